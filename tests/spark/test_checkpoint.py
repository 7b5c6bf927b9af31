"""Readers of a checkpoint and what they assert, on files that a test writes, broken ones too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mockbroker_fixtures import (
    assert_no_gap,
    assert_same_batches_after_crash,
    read_checkpoint,
)
from mockbroker_fixtures.checkpoint import CheckpointError

HEAD = {"batchWatermarkMs": 5, "batchTimestampMs": 7, "conf": {"spark.sql.shuffle.partitions": "2"}}

Ends = dict[str, int]


@pytest.fixture
def root(checkpoint_dir: Path) -> Path:
    """A checkpoint of a query that has read topic t from offset 3 on, in three batches."""
    write(checkpoint_dir / "metadata", '{"id":"the query"}')
    write(checkpoint_dir / "sources" / "0" / "0", '\0v1\n{"t":{"0":3}}')
    for batch, ends in enumerate([{"0": 10}, {"0": 20, "1": 4}, {"0": 20, "1": 9}]):
        plan(checkpoint_dir, batch, ends)
        commit(checkpoint_dir, batch)
    return checkpoint_dir


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def plan(root: Path, batch: int, ends: Ends) -> None:
    source = json.dumps({"t": ends})
    write(root / "offsets" / str(batch), f"v1\n{json.dumps(HEAD)}\n{source}\n-")


def commit(root: Path, batch: int) -> None:
    write(root / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')


def test_plans_commits_and_ranges_are_read(root: Path) -> None:
    write(root / "offsets" / ".2.crc", "noise")
    write(root / "offsets" / ".3.18a1.tmp", "a draft")
    write(root / "state" / "0" / "1" / "1.delta", "")
    found = read_checkpoint(root)
    assert found.query_id == "the query"
    assert (list(found.plans), found.commits, found.pending) == ([0, 1, 2], {0, 1, 2}, [])
    assert found.last_commit == 2
    assert found.ranges(0) == {("t", 0): range(3, 10)}
    assert found.ranges(1) == {("t", 0): range(10, 20), ("t", 1): range(4)}
    assert found.committed() == {("t", 0): 20, ("t", 1): 9}
    assert found.plans[1].watermark_ms == 5
    assert found.plans[1].timestamp_ms == 7
    assert found.plans[1].settings == HEAD["conf"]
    assert found.state == {(0, 1): root / "state" / "0" / "1"}


def test_a_source_without_data_yet_has_no_offsets(root: Path) -> None:
    assert read_checkpoint(root).ends(2, source=1) == {}


def test_a_batch_that_is_planned_and_not_committed_is_pending(root: Path) -> None:
    plan(root, 3, {"0": 25, "1": 9})
    found = read_checkpoint(root)
    assert found.pending == [3]
    assert found.committed() == {("t", 0): 20, ("t", 1): 9}
    assert_no_gap(found)


def test_commits_of_the_second_format_are_read(root: Path) -> None:
    write(root / "commits" / "2", 'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}')
    assert read_checkpoint(root).last_commit == 2


def test_a_checkpoint_that_spark_has_purged_begins_later(root: Path) -> None:
    for folder in ("offsets", "commits"):
        (root / folder / "0").unlink()
    found = read_checkpoint(root)
    assert_no_gap(found)
    with pytest.raises(CheckpointError, match="there is no plan of batch 0"):
        found.ranges(1)


def test_what_is_not_there_is_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"empty is no checkpoint.*no file metadata"):
        read_checkpoint(tmp_path / "empty")
    found = read_checkpoint(root)
    with pytest.raises(CheckpointError, match="no plan of batch 9"):
        found.ends(9)
    with pytest.raises(CheckpointError, match="no source 2, only 2"):
        found.ends(0, source=2)


def test_a_source_other_than_kafka_has_no_offsets_to_ask_for(root: Path) -> None:
    write(root / "offsets" / "2", f'v1\n{json.dumps(HEAD)}\n{{"logOffset":3}}')
    found = read_checkpoint(root)
    assert found.plans[2].sources == ({"logOffset": 3},)
    with pytest.raises(CheckpointError, match=r"source 0, batch 2.*no offsets of Kafka"):
        found.ends(2)


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("metadata", "{", "metadata is broken: Expecting"),
        ("metadata", "[]", "metadata names no query"),
        ("offsets/2", "", "offsets/2 is broken: it is empty"),
        ("offsets/2", "v1\n", "offsets/2 is broken: it ends after its version"),
        ("offsets/2", "v7\n{}\n{}", "offsets/2 begins with 'v7'.*v1"),
        ("offsets/2", "v1\n{}\n{}", "offsets/2 is broken: its second line lacks 'batchWatermark"),
        ("offsets/2", f"v1\n{json.dumps(HEAD)}\n{{'t':", "offsets/2 is broken: Expecting"),
        ("commits/1", "v1", "commits/1 is broken: it ends after its version"),
        ("commits/1", "v1\n{nothing", "commits/1 is broken: Expecting"),
        ("sources/0/0", "v1\n{", "sources/0/0 is broken: Expecting"),
    ],
)
def test_a_broken_file_is_named(root: Path, file: str, text: str, why: str) -> None:
    write(root / file, text)
    with pytest.raises(CheckpointError, match=why):
        read_checkpoint(root)


def test_a_file_of_bytes_is_broken(root: Path) -> None:
    (root / "offsets" / "2").write_bytes(b"v1\n\xff\xfe")
    with pytest.raises(CheckpointError, match="offsets/2 is broken: it is not text"):
        read_checkpoint(root)


# -- gaps ------------------------------------------------------------------------------------------


def test_without_a_gap_nothing_is_said(root: Path) -> None:
    assert_no_gap(root)
    assert_no_gap(str(root))


def without_plan(root: Path) -> None:
    (root / "offsets" / "1").unlink()


def without_commit(root: Path) -> None:
    (root / "commits" / "1").unlink()


def with_a_commit_too_many(root: Path) -> None:
    commit(root, 3)


def with_offsets_that_go_back(root: Path) -> None:
    plan(root, 2, {"0": 15, "1": 9})


def without_a_partition(root: Path) -> None:
    plan(root, 2, {"0": 20})


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (without_plan, "no batch between 0 and 2"),
        (without_commit, "batch 1 is not committed, and batch 2 is planned"),
        (with_a_commit_too_many, r"batches \[3\] are committed and not planned"),
        (with_offsets_that_go_back, "t-0 goes back from 20 to 15 in batch 2"),
        (without_a_partition, "t-1 is in batch 1, but no longer in batch 2"),
    ],
)
def test_a_gap_is_named(root: Path, break_it: Callable[[Path], None], why: str) -> None:
    break_it(root)
    with pytest.raises(AssertionError, match=why):
        assert_no_gap(root)


# -- after a crash ---------------------------------------------------------------------------------


@pytest.fixture
def crashed(root: Path) -> Path:
    """With a batch that is pending."""
    plan(root, 3, {"0": 30, "1": 9})
    return root


def test_the_same_batch_again_is_right(crashed: Path) -> None:
    before = read_checkpoint(crashed)
    commit(crashed, 3)
    plan(crashed, 4, {"0": 31, "1": 9})
    assert_same_batches_after_crash(before, crashed)


def test_a_pending_batch_that_has_not_run_is_named(crashed: Path) -> None:
    with pytest.raises(AssertionError, match=r"batches \[3\] were pending, and have not run"):
        assert_same_batches_after_crash(read_checkpoint(crashed), crashed)


def test_another_range_is_named(crashed: Path) -> None:
    before = read_checkpoint(crashed)
    plan(crashed, 3, {"0": 33, "1": 9})
    commit(crashed, 3)
    with pytest.raises(AssertionError, match=r"batch 3 ended at .*30.*, and now ends at .*33"):
        assert_same_batches_after_crash(before, crashed)


def test_a_plan_that_is_gone_is_named(crashed: Path) -> None:
    before = read_checkpoint(crashed)
    (crashed / "offsets" / "3").unlink()
    with pytest.raises(AssertionError, match="the plan of batch 3 is gone"):
        assert_same_batches_after_crash(before, crashed)


def test_checkpoints_of_two_queries_are_not_compared(crashed: Path) -> None:
    before = read_checkpoint(crashed)
    write(crashed / "metadata", '{"id":"another"}')
    with pytest.raises(AssertionError, match="of two queries"):
        assert_same_batches_after_crash(before, crashed)
