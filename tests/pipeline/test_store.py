"""A directory of runs is read, or refused with one clear message."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mockbroker.pipeline.store import StoreError, open_store
from mockbroker.pipeline.tables import SCHEMA_VERSION
from mockbroker.pipeline.write import TableWriter


@pytest.fixture
def store(tmp_path):
    """A directory with one good run of two tables."""
    with TableWriter(tmp_path, "r") as writer:
        writer.rows("gaps", [{"first_seq": 1, "last_seq": 2, "reason": "x"}])
        writer.rows("groups", [{"seq": 1, "group": "g"}])
    open_store(tmp_path).check()
    return tmp_path


def refused(directory, *words, runs=None):
    """The one message with which the directory is refused; it holds all the words."""
    with pytest.raises(StoreError) as caught:
        open_store(directory, runs).check()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    return message


def part(store, table="gaps"):
    return store / table / "run=r" / "part-00000.parquet"


def manifest(store, **changes):
    file = store / "_runs" / "r.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_directory_that_is_not_there_is_refused(tmp_path):
    refused(tmp_path / "nowhere", "there is no directory", "mockbroker journal export")


def test_a_foreign_directory_is_refused(tmp_path):
    (tmp_path / "records").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "records" / "part-0.parquet")
    refused(tmp_path, "holds no run of a journal", "serve --journal-dir")


def test_a_spool_that_was_never_converted_is_told(tmp_path):
    (tmp_path / "_spool" / "r").mkdir(parents=True)
    refused(tmp_path, "was never converted", "--from spool")


def test_a_run_that_is_not_there_is_refused(store):
    refused(store, "no run nope", "it has r", runs=["nope"])


def test_a_newer_schema_is_refused(store):
    manifest(store, schema_version=SCHEMA_VERSION + 1, mockbroker_version="9.9")
    refused(store, f"schema version {SCHEMA_VERSION + 1}", "mockbroker 9.9", "upgrade")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"schema_version": "1"}', '{"schema_version": 1}', "\x00"]
)
def test_a_broken_manifest_is_refused(store, text):
    (store / "_runs" / "r.json").write_text(text)
    refused(store, "is not a manifest of a run", "export the run again")


def test_a_manifest_whose_rows_are_none_is_refused(store):
    manifest(store, rows=3)
    refused(store, "is not a manifest of a run")


def test_missing_columns_are_refused(store):
    pq.write_table(pa.table({"first_seq": [1], "reason": ["x"]}), part(store))
    refused(store, "has no column last_seq", "export the run again")


def test_columns_of_another_type_are_refused(store):
    table = pa.table({"first_seq": ["1"], "last_seq": [1], "reason": ["x"]})
    pq.write_table(table, part(store))
    refused(store, "has string in column first_seq, not int64")


def test_columns_that_nobody_knows_do_no_harm(store):
    table = pa.table({"first_seq": [1], "last_seq": [1], "reason": ["x"], "more": [1]})
    pq.write_table(table, part(store))
    open_store(store).check()


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign"])
def test_a_broken_file_is_refused(store, damage):
    file = part(store)
    whole = file.read_bytes()
    file.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "foreign": b"x" * 99}[damage])
    refused(store, str(file), "is broken", "export the run again")


def test_a_missing_file_is_refused(store):
    part(store).unlink()
    refused(store, "table gaps of run r", "has 0 rows, but 1 were written")


def test_a_file_too_many_is_refused(store):
    part(store).with_name("part-00001.parquet").write_bytes(part(store).read_bytes())
    refused(store, "has 2 rows, but 1 were written")


def test_a_run_that_was_not_finished_is_refused_unless_that_will_do(store):
    manifest(store, complete=False, reason="the broker was killed")
    message = refused(store, "run r", "not complete: the broker was killed")
    assert "--from spool" in message
    open_store(store).check(incomplete=True)
    assert open_store(store).files("gaps") == [part(store)]


def test_an_unfinished_run_may_have_more_rows_than_its_manifest_knows_but_not_fewer(store):
    manifest(store, complete=False, rows={"gaps": 0})
    open_store(store).check(incomplete=True)
    manifest(store, rows={"gaps": 5})
    with pytest.raises(StoreError, match="but 5 were written"):
        open_store(store).check(incomplete=True)


def test_tables_without_a_row_have_no_files(store):
    assert open_store(store).files("records") == []
    with pytest.raises(KeyError):
        open_store(store).files("nonsense")


def test_without_pyarrow_the_remedy_is_told(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(store, "pyarrow: pip install '")
