"""Which broker speaks for which group, and what happens when that changes."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.member_connections import MemberConnections
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.replication.partition import Partition
from mockbroker.handlers.base import ConnectionInfo
from mockbroker_protocol import ErrorCode
from tests.support.group_node import (
    REBALANCE_MS,
    SESSION_MS,
    GroupNode,
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    sync_request,
)

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(racks=(None, None, None))


def home(node: GroupNode, group: str = "g") -> Partition:
    partition = node.cluster.partition(
        "__consumer_offsets", node.cluster.find_coordinator_partition(group)
    )
    assert partition is not None
    return partition


def test_a_group_lives_on_the_leader_of_its_partition(node: GroupNode) -> None:
    partition = home(node)
    for broker_id, broker in node.cluster.brokers.items():
        shard = broker.groups.shard_of("g")
        if broker_id == partition.leader_id:
            assert isinstance(shard, GroupShard)
            assert shard.partition is partition
        else:
            assert shard is E.NOT_COORDINATOR


def test_each_broker_has_a_shard_for_each_partition_it_leads(node: GroupNode) -> None:
    counts = []
    for broker in node.cluster.brokers.values():
        shards = list(broker.groups.shards())
        assert all(isinstance(shard, GroupShard) for shard in shards)
        counts.append(len(shards))
    assert sum(counts) == 50
    assert max(counts) - min(counts) <= 1


def test_without_the_topic_there_are_no_shards() -> None:
    node = GroupNode(offsets_topic=False)
    groups = node.cluster.brokers[1].groups
    assert list(groups.shards()) == []
    assert groups.shard_of("g") is E.NOT_COORDINATOR


def move(node: GroupNode, group: str = "g") -> tuple[int, int]:
    """Let the next broker lead the group's partition; returns the former and the new leader."""
    partition = home(node, group)
    former = partition.leader_id
    following = next(b for b in partition.replicas if b != former)
    partition.become_leader(following, partition.leader_epoch + 1, list(partition.isr))
    return former, following


def test_a_group_moves_with_its_partition(node: GroupNode) -> None:
    """Same members, generation and offsets on the new coordinator; the old one knows nothing."""
    broker = home(node).leader_id
    given = node.ask(join_request(), broker=broker).member_id
    node.ask(join_request("g", given), broker=broker)
    node.ask(sync_request("g", given, 1, {given: b"part"}), broker=broker)
    node.ask(commit_request({("t", 0): 7}, "g", given, 1), broker=broker)
    former, following = move(node)
    beat = heartbeat_request("g", given, 1)
    assert node.ask(beat, broker=former).error_code == E.NOT_COORDINATOR
    assert node.ask(beat, broker=following).error_code == E.NONE
    answer = node.ask(sync_request("g", given, 1), broker=following)
    assert answer.assignment == b"part"
    topics = node.ask(fetch_request(None), broker=following).groups[0].topics
    assert topics[0].partitions[0].committed_offset == 7


def test_whoever_waits_when_the_coordinator_moves_is_told_at_once(node: GroupNode) -> None:
    broker = home(node).leader_id
    given = node.ask(join_request(), broker=broker).member_id
    node.ask(join_request("g", given), broker=broker)
    other = node.ask(join_request(), broker=broker).member_id
    waiting = node.send(join_request("g", other), broker=broker)
    assert waiting.parked
    move(node)
    assert waiting.response.error_code == E.NOT_COORDINATOR


def test_timers_of_a_group_that_moved_do_nothing(node: GroupNode) -> None:
    broker = home(node).leader_id
    given = node.ask(join_request(), broker=broker).member_id
    node.ask(join_request("g", given), broker=broker)
    _, following = move(node)
    before = home(node).log_end_offset
    node.advance(SESSION_MS * 10)
    assert home(node).log_end_offset == before
    answer = node.ask(heartbeat_request("g", given, 1), broker=following)
    assert answer.error_code == E.UNKNOWN_MEMBER_ID  # the round was never completed


def test_a_new_epoch_of_the_same_leader_changes_nothing(node: GroupNode) -> None:
    partition = home(node)
    shard = node.shard("g", partition.leader_id)
    partition.become_leader(partition.leader_id, partition.leader_epoch + 1, partition.isr)
    assert node.shard("g", partition.leader_id) is shard


def test_the_end_of_the_topic_is_the_end_of_its_groups(node: GroupNode) -> None:
    partition = home(node)
    shard = node.shard("g", partition.leader_id)
    broker = partition.leader_id
    given = node.ask(join_request(), broker=broker).member_id
    node.cluster.delete_topic("__consumer_offsets")
    assert shard.unloaded
    assert node.ask(join_request("g", given), broker=broker).error_code == E.NOT_COORDINATOR
    node.cluster.ensure_internal_topic("__consumer_offsets")
    broker = home(node).leader_id
    assert node.ask(join_request("g", given), broker=broker).error_code == E.UNKNOWN_MEMBER_ID


def test_the_coordinator_of_a_removed_broker_writes_nothing_when_a_topic_is_deleted() -> None:
    node = GroupNode()
    node.ask(commit_request({("t", 0): 7}))
    partition = home(node)
    node.cluster.remove_broker(1)
    node.cluster.add_broker(1)
    node.shard()
    end = partition.log.end_offset
    node.cluster.delete_topic("t")
    assert partition.log.end_offset == end + 1, "a tombstone by the process that runs, and no other"


def test_deleting_a_topic_deletes_its_offsets_in_all_groups(node: GroupNode) -> None:
    """On every broker, and in the log, so that a topic of that name starts afresh."""
    names = [f"group-{i}" for i in range(12)]
    node.topic("u", 1)
    for name in names:
        request = commit_request({("t", 0): 5, ("t", 2): 6, ("u", 0): 7}, name)
        node.ask(request, broker=home(node, name).leader_id)
    node.cluster.delete_topic("t")
    node.topic("t", 3)
    for name in names:
        broker = home(node, name).leader_id
        (topic,) = node.ask(fetch_request(None, name), broker=broker).groups[0].topics
        assert topic.name == "u"
    for name in names:
        _, following = move(node, name)
        shard = node.shard(name, following)
        assert shard.offsets.get(name, "t", 0) is None
        assert shard.offsets.get(name, "u", 0) is not None


def test_only_sessions_of_members_with_an_open_connection_are_extended() -> None:
    node = GroupNode()
    there, gone = node.stable(count=2)
    connections = MemberConnections()
    connections.record("g", there, ConnectionInfo(1, "127.0.0.1", 50_000))
    connections.record("h", gone, ConnectionInfo(2, "127.0.0.1", 50_001))
    node.cluster.brokers[1].groups.extend_connected_sessions(connections, 5_000)
    node.advance(SESSION_MS)
    assert list(node.shard().groups["g"].members) == [there]
    node.advance(REBALANCE_MS)
    assert list(node.shard().groups["g"].members) == []
