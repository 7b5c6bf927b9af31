"""Why a Fetch does not go on where the answer before it ended."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.pipeline.convert.told_run import TOPIC_ID, ToldRun

LookUp = tuple[ApiKey, int, Any]


def list_offsets(partition: int = 0, replica_id: int = -1) -> LookUp:
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(partition)])]
    return ApiKey.LIST_OFFSETS, 6, ListOffsetsRequest(replica_id, topics=topics)


def leader_epoch(partition: int = 0, replica_id: int = -1) -> LookUp:
    topics = [OffsetForLeaderTopic("t", [OffsetForLeaderPartition(partition)])]
    message = OffsetForLeaderEpochRequest(replica_id, topics)
    return ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, message


def committed(version: int, *topics: OffsetFetchRequestTopics) -> LookUp:
    group = OffsetFetchRequestGroup("g", topics=list(topics) or None)
    return ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(groups=[group])


def starts(run: ToldRun) -> list[str | None]:
    return [row["start"] for row in run.rows("fetches")]


def look_up(run: ToldRun, connection: int, asked: LookUp) -> None:
    """A client looks offsets up, and its connection ends before the answer."""
    key, version, message = asked
    run.request(connection, (key, version), message)
    run.closed(connection)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (None, "jump"),
        (list_offsets(), "reset"),
        (leader_epoch(), "reset"),
        (committed(8, OffsetFetchRequestTopics("t", partition_indexes=[0])), "reset"),
        (committed(10, OffsetFetchRequestTopics("", TOPIC_ID, [0])), "reset"),
        (committed(8), "reset"),
        (list_offsets(1), "jump"),
        (leader_epoch(1), "jump"),
        (committed(8, OffsetFetchRequestTopics("t", partition_indexes=[1])), "jump"),
        (list_offsets(replica_id=2), "jump"),
        (leader_epoch(replica_id=2), "jump"),
    ],
)
def test_another_offset_is_a_reset_if_its_client_looked_offsets_up(
    asked: LookUp | None, why: str
) -> None:
    """Those of the partition, or of all. Those that followers look up are none of a consumer."""
    run = ToldRun()
    run.fetch(7, {0: 3})
    if asked is not None:
        look_up(run, 8, asked)
    run.fetch(7, {0: 5})
    run.fetch(7, {0: 5})
    run.fetch(7, {0: 6})
    assert starts(run) == ["connection", why, None, "jump"]


def test_what_was_looked_up_before_the_last_fetch_explains_no_other_offset() -> None:
    run = ToldRun()
    look_up(run, 8, list_offsets())
    run.fetch(7, {0: 3})
    run.fetch(7, {0: 5})
    assert starts(run) == ["connection", "jump"]


def test_what_another_host_looked_up_explains_no_other_offset() -> None:
    run = ToldRun()
    run.client(7, "a")
    run.client(8, "b")
    run.fetch(7, {0: 3})
    look_up(run, 8, list_offsets())
    run.fetch(7, {0: 5})
    assert starts(run) == ["connection", "jump"]


def test_a_refused_fetch_leaves_its_span_where_it_was() -> None:
    """An offset that was looked up before it is still news."""
    run = ToldRun()
    run.fetch(7, {0: 3})
    look_up(run, 8, list_offsets())
    refused = run.fetch_begins(7, {0: 3})
    run.fetch_ends(refused, [0], error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    run.fetch(7, {0: 5})
    assert starts(run) == ["connection", None, "reset"]
    assert [row["error"] for row in run.rows("fetches")] == [None, "NOT_LEADER_OR_FOLLOWER", None]


def test_a_rebalance_of_its_group_begins_spans_of_the_partitions_that_it_keeps_and_gets() -> None:
    """A new connection begins spans as such."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.fetch(7, {0: 0})
    run.fetch(7, {0: 0})
    run.heartbeat(1, "m", [0, 1])
    run.fetch(7, {0: 0, 1: 0})
    run.fetch(8, {0: 0})
    assert starts(run) == ["connection", None, "rebalance", "rebalance", "connection"]


def test_a_partition_that_the_first_fetch_left_out_begins_with_the_connection() -> None:
    """Also where the consumer has no group, and other ones of its client have rebalanced."""
    run = ToldRun()
    run.heartbeat(1, "m", [0, 1])
    run.fetch(7, {0: 0})
    run.fetch(7, {1: 0})
    run.heartbeat(1, "m", [])
    run.heartbeat(1, "m", epoch=-1)
    run.fetch(8, {0: 0})
    run.fetch(8, {1: 0})
    assert starts(run) == ["connection"] * 4


def test_an_answer_that_was_not_sent_whole_is_no_row() -> None:
    """The consumer goes on as if it had not been sent."""
    run = ToldRun()
    run.fetch(7, {0: 3})
    run.fetch_ends(run.fetch_begins(7, {0: 3}), [0], outcome="answer dropped")
    run.fetch(7, {0: 3})
    assert starts(run) == ["connection", None]
    requests = [(row["outcome"], row["response_seq"]) for row in run.rows("requests")]
    assert requests == [(None, 2), ("answer dropped", 4), (None, 6)]
