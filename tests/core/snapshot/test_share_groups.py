"""Share groups and streams groups in snapshots: written states come back, the rest is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.share.coordinator import coordinator_key
from mockbroker.core.share.operations import READ_SUMMARY
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.restore import clear, restore
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages import read_share_group_state_summary as summing
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching
from mockbroker_protocol.messages.streams_group_heartbeat import TopicInfo
from tests.support.requests import batch_of
from tests.support.share_node import ShareNode
from tests.support.stored_clusters import loaded, revived, whole
from tests.support.streams_node import StreamsNode, topology

ACCEPT = 1


class Sharing(ShareNode):
    """A node whose group "g" reads the first partition of "t" from the start."""

    def begins(self) -> None:
        self.cluster.configs.groups["g"] = {"share.auto.offset.reset": "earliest"}
        self.cluster.configs.changed()
        self.stable("m")
        for value in (b"a", b"b", b"c"):
            self.produced(batch_of(value))

    @property
    def topic_id(self) -> bytes:
        return self.cluster.topics["t"].topic_id

    def acquires(self, epoch: int, member: str = "m") -> Any:
        """ShareFetch: its error, or the ranges that it acquired."""
        row = fetching.FetchTopic(self.topic_id, [fetching.FetchPartition(0)])
        request = fetching.ShareFetchRequest(
            group_id="g",
            member_id=member,
            share_session_epoch=epoch,
            max_wait_ms=0,
            min_bytes=0,
            max_records=10,
            batch_size=10,
            topics=[row] if epoch == 0 else [],
        )
        answer = self.ask(request, 1)
        if answer.error_code:
            return ErrorCode(answer.error_code)
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for data in topic.partitions
            for each in data.acquired_records
        ]

    def acknowledgement(self, epoch: int, first: int, last: int, member: str = "m") -> Any:
        batch = acknowledging.AcknowledgementBatch(first, last, [ACCEPT])
        row = acknowledging.AcknowledgeTopic(
            self.topic_id, [acknowledging.AcknowledgePartition(0, [batch])]
        )
        return acknowledging.ShareAcknowledgeRequest("g", member, epoch, False, [row])

    def accepts(self, epoch: int, first: int, last: int, member: str = "m") -> int:
        answer = self.ask(self.acknowledgement(epoch, first, last, member), 1)
        return answer.error_code or answer.responses[0].partitions[0].error_code


@pytest.fixture
def node() -> Sharing:
    node = Sharing()
    node.begins()
    return node


def elsewhere(node: Any) -> Any:
    """A node in another process that goes on with the cluster of this one."""
    image = loaded(whole(capture(node.cluster)))
    other = type(node)()
    other.now_ms = node.now_ms
    other.cluster = revived(image, now_ms=lambda: other.now_ms)
    other.advance(0)
    return other


@pytest.mark.parametrize("way", ["restore", "another process"])
def test_written_acknowledgements_come_back_and_locks_do_not(node: Sharing, way: str) -> None:
    assert node.acquires(0) == [(0, 2, 1)]
    assert node.accepts(1, 0, 0) == 0
    if way == "restore":
        image = capture(node.cluster)
        assert node.accepts(2, 1, 1) == 0  # after the snapshot: it never happened
        restore(node.cluster, image)
        node.advance(0)
    else:
        node = elsewhere(node)
    assert node.acquires(2) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert node.acquires(0, "n") == [(1, 2, 1)]
    assert node.accepts(1, 1, 2, "n") == 0
    assert node.share_group("g").members["m"].epoch > 0


def test_a_restore_drops_share_partitions_sessions_and_lock_timers(node: Sharing) -> None:
    image = capture(node.cluster)
    assert node.acquires(0) == [(0, 2, 1)]
    (broker,) = node.cluster.brokers.values()
    (share,) = broker.share_partitions.all()
    restore(node.cluster, image)
    assert broker.share_partitions.all() == []
    assert len(broker.share_partitions.sessions) == 0
    assert not share.is_active
    assert not share.partition.has_watchers or share.partition.deleted
    node.advance(0)
    node.advance(60_000)  # the former locks would end
    assert node.acquires(0, "n") == [(0, 2, 1)]


def test_the_requests_of_a_persister_that_wait_for_a_retry_fail_with_a_restore() -> None:
    """A request that waits for a loading share coordinator is of the time after the snapshot."""
    node = Sharing(configs={"mockbroker.coordinator.load.ms": "500"})
    node.advance(1_000)
    image = capture(node.cluster)
    done: list[Any] = []
    (broker,) = node.cluster.brokers.values()
    row = summing.ReadStateSummaryData(node.topic_id, [summing.PartitionData(0)])
    request = summing.ReadShareGroupStateSummaryRequest("g", [row])
    broker.share_persister.send(READ_SUMMARY, request, done.append)
    assert done == []
    restore(node.cluster, image)
    (answer,) = done
    assert answer.results[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.advance(60_000)
    assert len(done) == 1


def test_an_acknowledgement_whose_write_waits_is_answered_by_a_restore(node: Sharing) -> None:
    image = capture(node.cluster)
    assert node.acquires(0) == [(0, 2, 1)]
    (broker,) = node.cluster.brokers.values()
    key = coordinator_key("g", node.topic_id, 0)
    assert broker.share_coordinator.reload(key, 500)  # the write is repeated 2 s later
    pending = node.send(node.acknowledgement(1, 0, 0), 1)
    assert pending.parked
    restore(node.cluster, image)
    (row,) = pending.response.responses[0].partitions
    assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_cleared_cluster_has_neither_share_partitions_nor_the_topic_of_their_states(
    node: Sharing,
) -> None:
    assert node.acquires(0) == [(0, 2, 1)]
    clear(node.cluster)
    (broker,) = node.cluster.brokers.values()
    assert list(node.cluster.topics) == []
    assert broker.share_partitions.all() == []
    assert len(broker.share_partitions.sessions) == 0
    node.advance(60_000)
    assert list(node.cluster.topics) == []


@pytest.mark.parametrize("way", ["restore", "another process"])
def test_members_of_a_streams_group_go_on_at_their_epochs_with_their_tasks(way: str) -> None:
    node = StreamsNode()
    answer = node.joins("g", "a", topology=topology("t", changelog=TopicInfo("c")))
    assert [each.partitions for each in answer.active_tasks] == [[0, 1, 2]]
    if way == "restore":
        image = capture(node.cluster)
        node.joins("g", "b", topology=topology("t", changelog=TopicInfo("c")))
        restore(node.cluster, image)
        node.advance(0)
    else:
        node = elsewhere(node)
    group = node.streams_group("g")
    assert list(group.members) == ["a"]
    again = node.beats("g", "a", answer.member_epoch, {"0": [0, 1, 2]})
    assert (again.error_code, again.member_epoch) == (0, answer.member_epoch)
    assert node.beats("g", "b", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert "c" in node.cluster.topics


def test_the_session_of_a_streams_member_begins_anew_with_a_restore() -> None:
    node = StreamsNode()
    node.joins("g", "a")
    image = capture(node.cluster)
    node.advance(40_000)
    restore(node.cluster, image)
    node.advance(0)
    node.advance(44_000)
    assert list(node.streams_group("g").members) == ["a"]
    node.advance(2_000)
    assert list(node.streams_group("g").members) == []
