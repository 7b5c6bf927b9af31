"""The operations of an application: written line by line, and added to a run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mockbroker.pipeline.operations import OperationLog, add_operations, read_operations
from mockbroker.pipeline.store import StoreError, open_store
from mockbroker.pipeline.write import TableWriter


def test_every_operation_comes_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "ops.jsonl"
    with OperationLog(path, "p1", group="g") as log:
        log.send("t", id="a")
        log.acked("t", 0, 7, id="a")
        log.failed("t", 1, id="b")
        log.assigned("t", 0, 3)
        log.processed("t", 0, 7, id="a")
        log.seek("t", 0, 1)
        log.committed("t", 0, 8)
        log.revoked("t", 0)
    rows = list(read_operations(path))
    assert [row["seq"] for row in rows] == list(range(1, 9))
    ops = ["send", "acked", "failed", "assigned", "processed", "seek", "committed", "revoked"]
    assert [row["op"] for row in rows] == ops
    assert {(row["process"], row["group"]) for row in rows} == {("p1", "g")}
    assert rows[1] == {**rows[1], "topic": "t", "partition": 0, "offset": 7, "id": "a"}
    times = [row["real_ns"] for row in rows]
    assert times == sorted(times)


def test_a_log_is_added_to_and_what_was_said_is_on_the_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ops.jsonl"
    first = OperationLog(path, "p1")
    first.processed("t", 0, 1)
    second = OperationLog(path, "p2")
    second.processed("t", 0, 2)
    assert [row["process"] for row in read_operations(path)] == ["p1", "p2"]


def test_a_log_is_closed_at_the_end_of_its_block(tmp_path: Path) -> None:
    with OperationLog(tmp_path / "ops.jsonl", "p") as log:
        log.send("t", id="straße")
    assert "straße" in (tmp_path / "ops.jsonl").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="closed"):
        log.send("t")


def test_a_last_line_that_was_not_finished_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ops.jsonl"
    with OperationLog(path, "p") as log:
        log.processed("t", 0, 1)
    with path.open("a") as file:
        file.write('{"seq": 2, "proc')
    assert len(list(read_operations(path))) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: this is not JSON"),
        ("[]", "an operation is an object"),
        ('{"op": "sent", "process": "p", "topic": "t"}', "op is one of send, acked"),
        ('{"op": "send", "process": "p", "topic": "t", "offsets": 1}', "there is no 'offsets'"),
        ('{"op": "send", "process": "p", "topic": "t", "offset": "1"}', "offset cannot be '1'"),
        ('{"op": "send", "process": "p", "topic": "t", "seq": true}', "seq cannot be True"),
        ('{"op": "send", "topic": "t"}', "process and topic are needed"),
    ],
)
def test_what_is_no_operation_is_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "ops.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(StoreError, match=message):
        list(read_operations(path))


def test_operations_are_put_into_a_run_and_replaced(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "audit", "r") as writer:
        writer.rows("gaps", [{"first_seq": 1}])
    logs = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for number, path in enumerate(logs):
        with OperationLog(path, path.stem) as log:
            log.processed("t", 0, number)
    for _ in range(2):
        assert add_operations(tmp_path / "audit", "r", *logs) == 2
    store = open_store(tmp_path / "audit")
    store.check()
    [file] = store.files("operations")
    rows = pq.ParquetFile(file).read().to_pylist()
    assert [(row["process"], row["offset"]) for row in rows] == [("a", 0), ("b", 1)]
    assert store.runs[0].rows == {"gaps": 1, "operations": 2}
    assert add_operations(tmp_path / "audit", "r") == 0
    open_store(tmp_path / "audit").check()


def test_a_run_that_is_not_there_or_a_log_that_is_none_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no run r"):
        add_operations(tmp_path, "r")
    with TableWriter(tmp_path, "r"):
        pass
    (tmp_path / "bad").write_text(json.dumps({"op": "send"}) + "\n")
    with pytest.raises(StoreError, match="line 1"):
        add_operations(tmp_path, "r", tmp_path / "bad")
    with pytest.raises(StoreError, match="cannot read"):
        add_operations(tmp_path, "r", tmp_path / "nowhere")
    open_store(tmp_path).check()
