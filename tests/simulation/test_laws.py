"""Each law reports its violation, in a cluster whose state a test has changed by hand."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from mockbroker.core.events import (
    GroupMoved,
    LeaderChanged,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.members import Member
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.groups.states import ClassicGroupState
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.replica import Replica
from mockbroker.core.replication.replication_control import ELR_FEATURE
from mockbroker.simulation import LAWS, ClientSettings
from mockbroker.simulation import history as happened
from mockbroker.simulation.clients.fetch_sessions import Key
from mockbroker.simulation.clients.reader import Reader
from mockbroker.simulation.history import (
    Commit,
    FetchedOffset,
    Owned,
)
from mockbroker.simulation.laws.replication import OneLeaderAnEpoch
from mockbroker.simulation.observe import replicas
from mockbroker.simulation.script import Call
from mockbroker.simulation.world import World
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from mockbroker_protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tests.simulation import breaking, breaking_shares
from tests.simulation.meddling import (
    append,
    batch_of,
    coordinated,
    group_call,
    partition_of,
    read_of,
    sent_of,
    transaction,
)

# -- what breaks each law --------------------------------------------------------------------------


def watermarks_out_of_order(world: World) -> None:
    partition = partition_of(world)
    partition.high_watermark = 5
    partition.notify()
    world.look()


def a_watermark_that_goes_back(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_of())
    world.look()
    partition.high_watermark = partition.last_stable_offset = 0
    partition.notify()
    world.look()


def two_leaders_of_an_epoch(world: World) -> None:
    partition = partition_of(world)
    (view,) = replicas(world.cluster, partition)
    other = next(node_id for node_id in partition.replicas if node_id != view.node_id)
    law = OneLeaderAnEpoch(world.laws)
    law.look(partition, [view, msgspec.structs.replace(view, node_id=other)])


def a_follower_in_sync_that_has_nothing(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_of())
    follower = next(n for n in partition.replicas if n != partition.leader_id)
    partition.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    world.laws.conclude()


def a_follower_in_sync_with_other_records(world: World) -> None:
    partition = partition_of(world)
    follower = next(n for n in partition.replicas if n != partition.leader_id)
    log = partition.log.fork()
    append(partition, batch_of(b"one"))
    other = batch_of(b"two")
    log.append(memoryview(other), 0, 1_700_000_000_000, partition.leader_epoch)
    partition.own_replicas[follower] = Replica(follower, log, 1)
    world.laws.conclude()


def a_gap_in_the_offsets(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_of())
    partition.log.end_offset += 3
    append(partition, batch_of())
    world.laws.conclude()


def a_leader_epoch_that_goes_back(world: World) -> None:
    partition = partition_of(world)
    for epoch in (5, 4):
        batch = batch_of()
        partition.log.append(memoryview(batch), 0, 1_700_000_000_000, epoch)
    world.laws.conclude()


def two_leaders_of_an_epoch_in_metadata(world: World) -> None:
    for leader_id in (1, 2):
        world.history.leader_told(partition_of(world).topic.topic_id, 0, 3, leader_id)
    world.laws.conclude()


def a_record_that_was_acknowledged_and_is_not_there(world: World) -> None:
    partition = partition_of(world)
    world.history.acked.append(sent_of(partition, batch_of(), 0))
    world.laws.conclude()


def a_gap_in_the_sequence_numbers(world: World) -> None:
    partition = partition_of(world)
    for sequence in (0, 2):
        append(partition, batch_of(producer_id=7, producer_epoch=0, base_sequence=sequence))
    world.laws.conclude()


def a_batch_written_twice(world: World) -> None:
    partition = partition_of(world)
    for _ in range(2):
        append(partition, batch_of(producer_id=7, producer_epoch=0, base_sequence=0))
    world.laws.conclude()


def an_old_epoch_after_a_new_one(world: World) -> None:
    partition = partition_of(world)
    for epoch in (1, 0):
        append(partition, batch_of(producer_id=7, producer_epoch=epoch, base_sequence=0))
    world.laws.conclude()


def a_stable_offset_beyond_an_open_transaction(world: World) -> None:
    partition = partition_of(world)
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    append(partition, batch)
    world.look()


def an_aborted_transaction_that_is_committed(world: World) -> None:
    transaction(world, happened.ABORTED, commit=True)
    world.laws.conclude()


def a_committed_transaction_that_is_aborted(world: World) -> None:
    transaction(world, happened.COMMITTED, commit=False)
    world.laws.conclude()


def a_reader_that_is_given_what_was_aborted(world: World) -> None:
    sent = transaction(world, happened.ABORTED, commit=False)
    read = read_of(partition_of(world), sent.base_offset, sent.crc, committed=True)
    world.history.reads.append(read)
    world.laws.conclude()


def readers_that_see_different_logs(world: World) -> None:
    partition = partition_of(world)
    world.history.reads += [read_of(partition, 0, 1), read_of(partition, 0, 2)]
    world.laws.conclude()


def a_partition_that_two_members_own(world: World) -> None:
    two_owners(world, "classic")


def a_partition_that_two_members_own_in_the_new_protocol(world: World) -> None:
    two_owners(world, "consumer")


def two_owners(world: World, protocol: str) -> None:
    for member in ("a", "b"):
        own = frozenset({("orders", 0)})
        world.history.owned.append(Owned(protocol, "g", member, member, 3, own, 0))
    world.laws.conclude()


def a_member_that_goes_back_to_an_earlier_epoch(world: World) -> None:
    for epoch in (4, 3):
        world.history.owned.append(Owned("consumer", "g", "a", "a", epoch, frozenset(), 0))
    world.laws.conclude()


def a_committed_offset_that_is_forgotten(world: World) -> None:
    commit = Commit("g", "orders", 0, 12, 1)
    commit.acked = 2
    world.history.commits.append(commit)
    world.history.found.append(FetchedOffset("g", "orders", 0, -1, 3, 4, 0))
    world.laws.conclude()


def a_request_without_an_answer(world: World) -> None:
    call = Call(1, ApiKey.FETCH, 12, FetchRequest(max_wait_ms=100), 5_000)
    world.laws.timed_out("r", call, world.laws.start_ms)


def a_broker_that_runs_and_stays_fenced(world: World) -> None:
    world.cluster.brokers[2].fenced = True
    world.laws.conclude()


def a_controller_that_is_fenced(world: World) -> None:
    controller = world.cluster.brokers[world.cluster.controller_id]
    controller.fenced = True
    partition_of(world).notify()
    world.look()


def an_unclean_election_that_nobody_allows(world: World) -> None:
    world.cluster.features.set_levels({ELR_FEATURE: 0})
    event = LeaderChanged(0, "orders", 0, 2, 1, 1, (2,), True, "session_expired")
    world.cluster.runtime.emit(event)


def an_answer_to_another_fetch(world: World) -> None:
    world.history.misfits.append("r asked for orders-0 and was given orders-1")
    world.laws.conclude()


def a_commit_of_a_former_generation(world: World) -> None:
    group_call(world, "sync", "a", 4)
    group_call(world, "commit", "b", 3)
    world.laws.conclude()


def a_heartbeat_of_a_former_generation(world: World) -> None:
    group_call(world, "sync", "a", 4)
    group_call(world, "heartbeat", "b", 3)
    world.laws.conclude()


def a_leader_that_is_awaited_for_ever(world: World) -> None:
    world.history.rebalance_ms["g"] = 3_000
    group_call(world, "join", "a", 4).leads = True
    world.clock.now_ms += 5_000
    group_call(world, "heartbeat", "a", 4)
    world.laws.conclude()


def an_assignment_of_another_generation(world: World) -> None:
    group_call(world, "sync", "a", 3).assignments = {"b": b"three"}
    group_call(world, "sync", "a", 4).assignments = {"b": b"four"}
    group_call(world, "sync", "b", 4).assigned = b"three"
    world.laws.conclude()


def a_member_that_has_not_joined(world: World) -> None:
    group_call(world, "join", "b", 3)
    group_call(world, "join", "a", 4).listed = ("a", "b")
    world.laws.conclude()


def a_former_self_that_is_nobody(world: World) -> None:
    for member in ("b", "a"):
        group_call(world, "join", member, 3, instance="i")
        group_call(world, "sync", member, 3, instance="i")
    group_call(world, "heartbeat", "b", 3, instance="i", error=25)  # UNKNOWN_MEMBER_ID
    world.laws.conclude()


def a_partition_that_is_given_away_too_early(world: World) -> None:
    own = frozenset({(bytes(16), 0)})
    group_call(world, "join", "a", 2, protocol="consumer").assigned = own
    group_call(world, "join", "b", 3, protocol="consumer").assigned = own
    group_call(world, "heartbeat", "a", 3, protocol="consumer")
    world.laws.conclude()


def a_member_epoch_that_goes_back(world: World) -> None:
    for what, epoch in (("join", 3), ("heartbeat", 2)):
        group_call(world, what, "a", epoch, protocol="consumer")
    world.laws.conclude()


def a_coordinator_of_a_broker_that_follows(world: World) -> None:
    shard = coordinated(world)
    shard.partition.leader_id = next(
        node_id for node_id in shard.partition.replicas if node_id != shard.partition.leader_id
    )
    world.laws.changed[shard.partition] = None
    world.look()


def a_coordinator_that_has_not_read_its_log(world: World) -> None:
    shard = coordinated(world)
    del shard.coordinator._shards[0]
    world.laws.resting()


def a_write_that_is_told_of_twice(world: World) -> None:
    shard = coordinated(world)
    shard.partition.high_watermark = 0
    shard.when_replicated(lambda _: None)
    timer = shard._deferred[0].timer
    assert timer is not None
    timer.cancel()
    world.laws.changed[shard.partition] = None
    world.look()


def an_offset_that_is_in_no_log(world: World) -> None:
    shard = coordinated(world)
    shard.offsets.commit("g", "orders", 0, OffsetAndMetadata(9))
    world.laws.conclude()


def a_transaction_log_that_grows_with_too_few(world: World) -> None:
    world.cluster.create_topic("__transaction_state", 1, 3, configs={"min.insync.replicas": "2"})
    partition = world.cluster.topics["__transaction_state"].partitions[0]
    partition.isr = [partition.leader_id]
    partition.notify()
    world.look()
    append(partition, batch_of())
    world.look()


def a_member_that_waits_in_a_group_that_is_stable(world: World) -> None:
    group = coordinated(world).classic.get("g")
    assert group is not None
    member = Member("m", None, "c", "h", 1_000, 1_000, (("range", b""),), b"")
    member.sync_callback = object()
    group.add_member(member, "consumer")
    group.state = ClassicGroupState.STABLE
    world.cluster.runtime.emit(GroupMoved(0, 1, "g", "CompletingRebalance", "Stable", 0, 1, ""))


def a_consumer_that_stays_behind(world: World) -> None:
    shard = coordinated(world)
    group = ConsumerGroup("g", ConsumerSettings(), shard.coordinator.topics)
    group.members["m"] = ConsumerMember(member_id="m", epoch=2)
    group.assignment_epoch = 3
    shard.put_group(group)
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2)
    call = Call(shard.coordinator.broker_id, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, 5_000)
    answer = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=2)
    world.laws.on_response(reader_of(world), call, answer, since_ms=world.clock.now_ms)


def reader_of(world: World) -> Reader:
    return Reader(ClientSettings(kind="reader", name="r"), "4.3", [1, 2, 3], world.history)


def a_fetch_that_tells_another_watermark(world: World) -> None:
    partition = partition_of(world)
    reader = reader_of(world)
    reader.fetching = ({("orders", 0): FetchPartition(0, -1, 0, -1, -1, 1_000)}, {})
    call = Call(partition.leader_id, ApiKey.FETCH, 12, FetchRequest(max_wait_ms=100), 5_000)
    data = PartitionData(0, 0, 7, 7, 0)
    answer = FetchResponse(responses=[FetchableTopicResponse("orders", bytes(16), [data])])
    world.laws.on_response(reader, call, answer, since_ms=world.clock.now_ms)


def a_fetch_that_leaves_out_what_has_changed(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_of())
    reader = reader_of(world)
    asked: dict[Key, FetchPartition] = {("orders", 0): FetchPartition(0, -1, 0, -1, -1, 1_000)}
    reader.fetching = (asked, {("orders", 0): (0, 0)})
    call = Call(partition.leader_id, ApiKey.FETCH, 12, FetchRequest(max_wait_ms=100), 5_000)
    world.laws.on_response(reader, call, FetchResponse(session_id=1), since_ms=world.clock.now_ms)


BREAKERS: tuple[tuple[str, Callable[[World], None]], ...] = (
    ("watermarks are in order", watermarks_out_of_order),
    ("the high watermark rises", a_watermark_that_goes_back),
    ("one leader an epoch", two_leaders_of_an_epoch),
    ("the controller is alive", a_controller_that_is_fenced),
    ("unclean elections are allowed", an_unclean_election_that_nobody_allows),
    ("fetches return what was requested", an_answer_to_another_fetch),
    ("replicas agree", a_follower_in_sync_that_has_nothing),
    ("replicas agree", a_follower_in_sync_with_other_records),
    ("leader epochs rise", a_leader_epoch_that_goes_back),
    ("leader epochs rise", two_leaders_of_an_epoch_in_metadata),
    ("offsets are dense", a_gap_in_the_offsets),
    ("acknowledged records are kept", a_record_that_was_acknowledged_and_is_not_there),
    ("sequence numbers are consecutive", a_gap_in_the_sequence_numbers),
    ("sequence numbers are consecutive", a_batch_written_twice),
    ("old producer epochs are fenced", an_old_epoch_after_a_new_one),
    ("the last stable offset follows", a_stable_offset_beyond_an_open_transaction),
    ("transactions are atomic", an_aborted_transaction_that_is_committed),
    ("transactions are atomic", a_committed_transaction_that_is_aborted),
    ("transactions are atomic", a_reader_that_is_given_what_was_aborted),
    ("readers see one log", readers_that_see_different_logs),
    ("partitions are owned once", a_partition_that_two_members_own),
    ("partitions are owned once", a_partition_that_two_members_own_in_the_new_protocol),
    ("partitions are owned once", a_member_that_goes_back_to_an_earlier_epoch),
    ("earlier generations are refused", a_commit_of_a_former_generation),
    ("earlier generations are refused", a_heartbeat_of_a_former_generation),
    ("silent group leaders are removed", a_leader_that_is_awaited_for_ever),
    ("assignments belong to their generation", an_assignment_of_another_generation),
    ("generations consist of joined members", a_member_that_has_not_joined),
    ("replaced static members are fenced", a_former_self_that_is_nobody),
    ("partitions are revoked before they are assigned", a_partition_that_is_given_away_too_early),
    ("member epochs rise", a_member_epoch_that_goes_back),
    ("coordinators follow the leadership", a_coordinator_of_a_broker_that_follows),
    ("coordinators follow the leadership", a_coordinator_that_has_not_read_its_log),
    ("coordinators follow the leadership", a_write_that_is_told_of_twice),
    ("coordinators agree with their log", an_offset_that_is_in_no_log),
    ("coordinators write to enough replicas", a_transaction_log_that_grows_with_too_few),
    ("rebalance phases end", a_member_that_waits_in_a_group_that_is_stable),
    ("consumers reach their target", a_consumer_that_stays_behind),
    ("fetches report the broker's own log", a_fetch_that_tells_another_watermark),
    ("fetches report the broker's own log", a_fetch_that_leaves_out_what_has_changed),
    ("committed offsets are kept", a_committed_offset_that_is_forgotten),
    ("requests are answered in time", a_request_without_an_answer),
    ("everything comes to rest", a_broker_that_runs_and_stays_fenced),
    *breaking.BREAKERS,
    *breaking_shares.BREAKERS,
)


@pytest.mark.parametrize(
    ("law", "breaks"), BREAKERS, ids=[breaks.__name__ for _, breaks in BREAKERS]
)
def test_a_law_catches(law: str, breaks: Callable[[World], None], world: World) -> None:
    breaks(world)
    assert law in {violation.law for violation in world.laws.violations}


def test_every_law_is_broken_by_one_of_these_tests() -> None:
    assert {law.name for law in LAWS} == {law for law, _ in BREAKERS}


def test_no_law_is_broken_where_nothing_happens(world: World) -> None:
    world.laws.conclude()
    assert world.laws.violations == []
