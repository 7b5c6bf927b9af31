"""Share groups and streams groups in a data directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from mockbroker_protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.support.requests import batch_of
from tests.support.streams_node import topology

CONFIGS = {
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
ATTEMPTS_MAX = 50


@contextmanager
def served(data_dir: Path, **options: Any) -> Iterator[Connection]:
    """A process with this data directory, and a connection to it."""
    with Cluster(brokers=1, data_dir=data_dir, configs=CONFIGS, **options) as kafka:
        connection = Connection(*kafka.endpoint(1), "tester", timeout_s=10.0)
        try:
            # The first FindCoordinator creates `__consumer_offsets`.
            connection.send(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
            yield connection
        finally:
            connection.close()


def joins(connection: Connection, member: str) -> int:
    """The epoch of a member of share group "g" that has its partition."""
    epoch = 0
    for _ in range(ATTEMPTS_MAX):
        names = ["t"] if epoch == 0 else None
        request = ShareGroupHeartbeatRequest("g", member, epoch, None, names)
        answer = connection.send(request, 1)
        if answer.error_code == 0:
            epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return epoch
    raise AssertionError(answer)


def topic_id_of(connection: Connection) -> bytes:
    request = MetadataRequest([MetadataRequestTopic(name="t")])
    found: bytes = connection.send(request, 12).topics[0].topic_id
    return found


def acquires(connection: Connection, member: str, epoch: int = 0) -> Any:
    """ShareFetch: its error, or the ranges that it acquired."""
    row = fetching.FetchTopic(topic_id_of(connection), [fetching.FetchPartition(0)])
    request = fetching.ShareFetchRequest(
        group_id="g",
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=200 if epoch == 0 else 5_000,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=[row] if epoch == 0 else [],
    )
    answer = connection.send(request, 1)
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for data in topic.partitions
        for each in data.acquired_records
    ]


def produces(connection: Connection) -> None:
    for value in (b"a", b"b", b"c"):
        data = TopicProduceData("t", partition_data=[PartitionProduceData(0, batch_of(value))])
        connection.send(ProduceRequest(None, -1, 1_000, [data]), 9)


def accepts(connection: Connection, member: str, epoch: int, first: int, last: int) -> int:
    batch = acknowledging.AcknowledgementBatch(first, last, [1])
    row = acknowledging.AcknowledgeTopic(
        topic_id_of(connection), [acknowledging.AcknowledgePartition(0, [batch])]
    )
    answer = connection.send(
        acknowledging.ShareAcknowledgeRequest("g", member, epoch, False, [row]), 1
    )
    return answer.error_code or answer.responses[0].partitions[0].error_code


def test_the_next_process_goes_on_behind_the_accepted_records(tmp_path: Path) -> None:
    """The group begins with the first records: it is there before they are produced."""
    with served(tmp_path, topics={"t": 1}) as connection:
        epoch = joins(connection, "m")
        assert acquires(connection, "m") == []
        produces(connection)
        assert acquires(connection, "m", 1)[0][0] == 0
        assert accepts(connection, "m", 2, 0, 0) == 0
    with served(tmp_path) as connection:
        beat = connection.send(ShareGroupHeartbeatRequest("g", "m", epoch), 1)
        assert (beat.error_code, beat.member_epoch) == (0, epoch)
        assert acquires(connection, "m", 3) is ErrorCode.SHARE_SESSION_NOT_FOUND
        first, _, _ = acquires(connection, "m")[0]
        assert first == 1


def test_the_next_process_has_the_members_of_a_streams_group(tmp_path: Path) -> None:
    with served(tmp_path, topics={"t": 2}) as connection:
        request = StreamsGroupHeartbeatRequest(
            group_id="app",
            member_id="a",
            rebalance_timeout_ms=60_000,
            topology=topology("t"),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="p",
        )
        joined = connection.send(request, 0)
        assert [each.partitions for each in joined.active_tasks] == [[0, 1]]
    with served(tmp_path) as connection:
        again = connection.send(
            StreamsGroupHeartbeatRequest(
                group_id="app", member_id="a", member_epoch=joined.member_epoch
            ),
            0,
        )
        assert (again.error_code, again.member_epoch) == (0, joined.member_epoch)
        other = StreamsGroupHeartbeatRequest(group_id="app", member_id="b", member_epoch=1)
        assert connection.send(other, 0).error_code == ErrorCode.UNKNOWN_MEMBER_ID
