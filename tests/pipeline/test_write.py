"""Rows in, Parquet files and a manifest out."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mockbroker.pipeline.store import RunManifest, StoreError, open_store, parts, read_manifest
from mockbroker.pipeline.tables import TABLES, duckdb_columns
from mockbroker.pipeline.write import TableWriter

RECORD = {"append_seq": 7, "topic": "t", "topic_id": "x" * 22, "partition": 0, "offset": 3}


def read(directory, table):
    return pq.ParquetDataset([str(f) for f in open_store(directory).files(table)]).read()


def test_rows_come_back_as_they_were_given_and_what_was_not_given_is_null(tmp_path):
    with TableWriter(tmp_path, "r") as writer:
        writer.rows("records", [RECORD, {**RECORD, "offset": 4, "id": "a", "value_hash": -(2**63)}])
        writer.rows("faults", [{"seq": 1, "rules": ["x", "y"]}, {"seq": 2, "rules": []}])
    records = read(tmp_path, "records").to_pylist()
    assert [row["offset"] for row in records] == [3, 4]
    assert [row["id"] for row in records] == [None, "a"]
    assert records[1]["value_hash"] == -(2**63)
    faults = read(tmp_path, "faults").to_pylist()
    assert [row["rules"] for row in faults] == [["x", "y"], []]
    assert faults[0]["request_seq"] is None


def test_columns_may_be_lists_arrays_of_numpy_and_of_arrow(tmp_path):
    with TableWriter(tmp_path, "r") as writer:
        writer.columns(
            "deliveries",
            {
                "response_seq": [5, 5],
                "offset": np.arange(2),
                "topic": pa.array(["t", "t"]),
                "topic_id": pa.array(["i", "i"]).dictionary_encode(),
                "partition": np.zeros(2, "int32"),
            },
        )
        writer.rows("deliveries", [{"response_seq": 6, "offset": 2}])
        writer.columns("deliveries", {"response_seq": [7], "offset": [3]})
    rows = read(tmp_path, "deliveries")
    assert rows["offset"].to_pylist() == [0, 1, 2, 3]
    assert rows["topic_id"].to_pylist() == ["i", "i", None, None]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_can_be_written_and_has_the_columns_and_types_that_it_declares(tmp_path, table):
    values = {
        "int64": 2**40,
        "int32": 2**20,
        "int16": 2**10,
        "int8": 1,
        "bool": True,
        "string": "s",
        "strings": ["s"],
    }
    row = {column.name: values[column.kind] for column in TABLES[table]}
    with TableWriter(tmp_path, "r") as writer:
        writer.rows(table, [row, {}])
    store = open_store(tmp_path)
    store.check()
    [file] = store.files(table)
    assert pq.ParquetFile(file).read().to_pylist() == [row, dict.fromkeys(row)]
    query = f"describe select * from read_parquet('{file}', hive_partitioning = true)"
    with duckdb.connect() as connection:
        described = connection.execute(query).fetchall()
    found = ", ".join(f'"{name}" {kind}' for name, kind, *_ in described)
    assert found == duckdb_columns(table)


def test_files_roll_after_so_many_rows_and_when_told_to(tmp_path):
    writer = TableWriter(tmp_path, "r", part_rows=1 << 17)
    for start in range(0, 3 << 16, 1 << 16):
        writer.columns("gaps", {"first_seq": np.arange(start, start + (1 << 16))})
    assert len(parts(tmp_path, "gaps", "r")) == 1
    writer.roll()
    assert len(parts(tmp_path, "gaps", "r")) == 2
    assert read_manifest(tmp_path / "_runs/r.json").rows == {"gaps": 3 << 16}
    writer.rows("gaps", [{"first_seq": -1}])
    writer.close()
    assert read(tmp_path, "gaps")["first_seq"].to_pylist() == [*range(3 << 16), -1]


def test_until_it_is_closed_a_run_is_not_complete_and_what_was_rolled_can_be_read(tmp_path):
    writer = TableWriter(tmp_path, "r", cluster_id="abc")
    writer.rows("gaps", [{"first_seq": 1}])
    writer.roll()
    writer.rows("gaps", [{"first_seq": 2}])
    store = open_store(tmp_path)
    assert store.runs[0].complete is False
    assert store.runs[0].cluster_id == "abc"
    assert read(tmp_path, "gaps")["first_seq"].to_pylist() == [1]
    store.check(incomplete=True)
    with pytest.raises(StoreError, match="not complete"):
        store.check()
    writer.describe(last_seq=9, ended_virtual_ms=5)
    done = writer.close()
    assert (done.complete, done.last_seq, done.rows) == (True, 9, {"gaps": 2})
    assert isinstance(done, RunManifest)
    assert done == open_store(tmp_path).runs[0]
    open_store(tmp_path).check()
    assert not (tmp_path / "_tmp").exists()


def test_a_run_that_is_broken_off_stays_incomplete_and_says_why(tmp_path):
    def rows():
        yield {"first_seq": 1}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), TableWriter(tmp_path, "r") as writer:
        writer.rows("gaps", rows())
    with pytest.raises(StoreError, match="ZeroDivisionError"):
        open_store(tmp_path).check()


def test_a_run_is_not_written_twice_unless_it_is_to_be_replaced(tmp_path):
    for number in (1, 2):
        with TableWriter(tmp_path, "r", replace=number == 2) as writer:
            writer.rows("gaps", [{"first_seq": number}])
    assert read(tmp_path, "gaps")["first_seq"].to_pylist() == [2]
    with pytest.raises(StoreError, match="has a run r already"):
        TableWriter(tmp_path, "r")


def test_runs_lie_beside_each_other(tmp_path):
    for run in ("a", "b"):
        with TableWriter(tmp_path, run) as writer:
            writer.rows("gaps", [{"reason": run}])
    assert [run.run for run in open_store(tmp_path).runs] == ["a", "b"]
    assert len(open_store(tmp_path).files("gaps")) == 2
    [file] = open_store(tmp_path, ["b"]).files("gaps")
    assert pq.ParquetFile(file).read()["reason"].to_pylist() == ["b"]


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a b", "ä"])
def test_a_run_s_name_can_stand_in_a_path(tmp_path, name):
    with pytest.raises(StoreError, match="invalid name of a run"):
        TableWriter(tmp_path, name)


@pytest.mark.parametrize("give", ["rows", "columns"])
def test_tables_and_columns_that_there_are_not_are_refused(tmp_path, give):
    writer = TableWriter(tmp_path, "r")
    wrong = [{"offsets": 1}] if give == "rows" else {"offsets": [1]}
    with pytest.raises(KeyError, match="offsets"):
        getattr(writer, give)("records", wrong)
    with pytest.raises(KeyError, match="record"):
        getattr(writer, give)("record", wrong)


def test_a_directory_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write into"):
        TableWriter(tmp_path / "file", "r")


def test_a_record_or_delivery_takes_no_more_than_twelve_bytes(tmp_path):
    count = 200_000
    random = np.random.default_rng(7)
    seqs = np.repeat(np.arange(count // 100) * 3, 100)
    place = {"topic": ["orders"] * count, "topic_id": ["x" * 22] * count}
    place |= {"partition": np.arange(count) // 100 % 4, "offset": np.arange(count)}
    hashes = random.integers(-(2**63), 2**63 - 1, count)
    with TableWriter(tmp_path, "r") as writer:
        writer.columns(
            "records",
            {
                **place,
                "append_seq": seqs,
                "timestamp": 1_700_000_000_000 + np.cumsum(random.integers(0, 9, count)),
                "value_hash": hashes,
            },
        )
        writer.columns(
            "deliveries",
            {
                **place,
                "response_seq": seqs,
                "position": np.arange(count) % 500,
                "value_hash": hashes,
            },
        )
    store = open_store(tmp_path)
    for table in ("records", "deliveries"):
        assert sum(file.stat().st_size for file in store.files(table)) <= 12 * count
