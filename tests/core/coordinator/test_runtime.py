"""A coordinator loads and unloads by what its broker knows of the partitions it may lead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mockbroker.core.coordinator.runtime import CoordinatorRuntime
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    commit_request,
    join_request,
    sync_request,
)
from tests.support.txn_node import TxnNode

E = ErrorCode
THREE = (None, None, None)
DAY_MS = 86_400_000

Runtime = CoordinatorRuntime  # type: ignore[type-arg]


def groups() -> tuple[TxnNode, Runtime, Partition]:
    """A coordinator of groups, and the partition that group "g" is written in."""
    node = TxnNode(racks=THREE)
    partition = home(node, GROUP_METADATA_TOPIC, "g")
    node.ask(commit_request({("t", 0): 7}), broker=partition.leader_id)
    return node, node.cluster.brokers[partition.leader_id].groups, partition


def transactions() -> tuple[TxnNode, Runtime, Partition]:
    """A coordinator of transactions, and the partition that the id "x" is written in."""
    node = TxnNode(racks=THREE)
    node.txn()
    partition = home(node, TRANSACTION_STATE_TOPIC, "x")
    return node, node.cluster.brokers[partition.leader_id].transactions, partition


def home(node: GroupNode, topic: str, key: str) -> Partition:
    index = node.cluster.find_coordinator_partition(key, topic)
    return node.cluster.topics[topic].partitions[index]


both = pytest.mark.parametrize("kind", [groups, transactions])
Kind = Callable[[], tuple[TxnNode, Runtime, Partition]]


@both
def test_the_coordinator_of_a_removed_broker_reads_nothing_for_the_next_of_its_id(
    kind: Kind,
) -> None:
    node, former, partition = kind()
    node_id = partition.leader_id
    node.cluster.remove_broker(node_id)
    node.cluster.add_broker(node_id)
    node.settle()
    node.cluster.move_leader(partition.topic.name, partition.index, node_id)
    assert former.shard(partition) is E.NOT_COORDINATOR
    broker = node.cluster.brokers[node_id]
    following: Runtime = broker.groups if kind is groups else broker.transactions
    node.settle()
    assert not isinstance(following.shard(partition), ErrorCode)


@both
def test_to_hear_of_what_is_known_changes_nothing(kind: Kind) -> None:
    node, coordinator, partition = kind()
    shard = coordinator.shard(partition)
    coordinator.on_leadership_change(partition)
    assert coordinator.shard(partition) is shard
    coordinator.unload()
    coordinator.on_leadership_change(partition)
    coordinator.on_leadership_change(partition)
    node.advance(0)
    (loaded,) = coordinator.loaded()
    assert loaded is not shard
    assert coordinator.shard(partition) is loaded


@both
def test_what_was_heard_of_is_read_at_the_next_turn(kind: Kind) -> None:
    node, coordinator, partition = kind()
    coordinator.unload()
    coordinator.on_leadership_change(partition)
    assert coordinator.loaded() == []
    node.advance(0)
    assert [shard.partition for shard in coordinator.loaded()] == [partition]


@both
def test_an_operator_who_looks_before_that_turn_has_it_read(kind: Kind) -> None:
    node, coordinator, partition = kind()
    coordinator.unload()
    coordinator.on_leadership_change(partition)
    coordinator.runtime.finish_loads()
    (loaded,) = coordinator.loaded()
    assert loaded.partition is partition
    node.advance(0)
    assert coordinator.loaded() == [loaded]
    assert coordinator.runtime.loads == {}


@pytest.mark.parametrize(("kind", "answers"), [(groups, True), (transactions, False)])
def test_a_question_before_that_turn_has_groups_read_and_transactions_wait(
    kind: Kind, answers: bool
) -> None:
    _, coordinator, partition = kind()
    coordinator.unload()
    coordinator.on_leadership_change(partition)
    early = coordinator.shard(partition)
    assert (early in coordinator.loaded()) == answers
    assert (early is E.COORDINATOR_LOAD_IN_PROGRESS) != answers


@both
def test_who_does_not_lead_any_more_lets_go(kind: Kind) -> None:
    """Also if nothing but the broker's word tells it."""
    _, coordinator, partition = kind()
    shard = coordinator.shard(partition)
    partition.leader_id = -1
    coordinator.on_leadership_change(partition)
    assert coordinator.loaded() == []
    assert shard.unloaded  # type: ignore[union-attr]


@both
def test_a_leader_with_another_log_reads_that(kind: Kind) -> None:
    node, coordinator, partition = kind()
    partition.set_leader_log(partition.log.fork(), partition.high_watermark)
    former = coordinator.shard(partition)
    coordinator.on_leadership_change(partition)
    node.advance(0)
    assert coordinator.shard(partition) is not former
    assert coordinator.shard(partition) in coordinator.loaded()


@both
def test_the_end_of_a_former_topic_does_not_touch_the_present_one(kind: Kind) -> None:
    node, coordinator, former = kind()
    node.cluster.delete_topic(former.topic.name)
    assert coordinator.loaded() == []
    node.cluster.create_topic(former.topic.name, assignments={0: [coordinator.broker_id]})
    present = node.cluster.topics[former.topic.name].partitions[0]
    former.index = 0
    shard = coordinator.shard(present)
    coordinator.on_leadership_change(former)
    assert coordinator.shard(present) is shard


@both
def test_an_empty_partition_is_not_read_before_somebody_asks(kind: Kind) -> None:
    node, coordinator, written = kind()
    empty = next(
        each
        for each in written.topic.partitions
        if each.leader_id == coordinator.broker_id and each is not written
    )
    coordinator.on_leadership_change(empty)
    node.advance(0)
    assert coordinator.shard(written) in coordinator.loaded()
    assert len(coordinator.loaded()) == 1
    assert coordinator.shard(empty) in coordinator.loaded()


@both
def test_a_process_that_has_ended_coordinates_nothing(kind: Kind) -> None:
    """Even if it is still the leader for the controller, and somebody asks."""
    node, coordinator, partition = kind()
    node.cluster.stop_broker(coordinator.broker_id, "unclean", fence_after_ms=DAY_MS)
    assert partition.leader_id == coordinator.broker_id
    coordinator.on_leadership_change(partition)
    assert set(coordinator.shards()) == {E.NOT_COORDINATOR}
    node.advance(0)
    assert coordinator.loaded() == []


def cut_for_a_moment(node: GroupNode, broker: int) -> None:
    """A broker loses the controller, and has it back before anybody else has led for it."""
    node.cluster.cut_network(broker, fence_after_ms=3000)
    node.advance(50)
    node.cluster.heal_network()


def test_a_transaction_runs_out_of_time_though_its_coordinator_lost_the_controller() -> None:
    """It came back to the leadership that it had, and its client is gone: nobody asks it."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.add(0)
    p.produce(version=11)
    cut_for_a_moment(node, p.broker)
    node.advance(DAY_MS)
    partition = node.cluster.topics["t"].partitions[0]
    assert partition.last_stable_offset == partition.log_end_offset == 2
    assert node.words() == ["v", "ABORT"]


def test_a_session_ends_though_its_coordinator_lost_the_controller() -> None:
    """The group is written down as empty without anybody's asking."""
    node = GroupNode(racks=THREE)
    partition = home(node, GROUP_METADATA_TOPIC, "g")
    broker = partition.leader_id
    member = node.ask(join_request(), broker=broker).member_id
    node.ask(join_request("g", member), broker=broker)
    node.ask(sync_request("g", member, 1, {member: b"part"}), broker=broker)
    end_offset = partition.log_end_offset
    cut_for_a_moment(node, broker)
    node.advance(2 * SESSION_MS)
    assert partition.leader_id == broker
    assert partition.log_end_offset == end_offset + 1
    (group,) = node.ask(DescribeGroupsRequest(["g"]), broker=broker).groups
    assert (group.group_state, group.members) == ("Empty", [])


def test_a_coordinator_that_stands_still_ends_no_transaction_before_it_goes_on() -> None:
    node = TxnNode(racks=THREE)
    txn = node.txn()
    txn.init(transaction_timeout_ms=1_000)
    txn.add(0)
    coordinator = node.coordinator_of("x")
    node.cluster.pause_broker(coordinator, fence_after_ms=3_600_000)
    index = home(node, TRANSACTION_STATE_TOPIC, "x").index
    stored = len(node.stored(TRANSACTION_STATE_TOPIC, index))
    node.advance(600_000)
    assert len(node.stored(TRANSACTION_STATE_TOPIC, index)) == stored
    node.cluster.resume_broker(coordinator)
    assert len(node.stored(TRANSACTION_STATE_TOPIC, index)) > stored
