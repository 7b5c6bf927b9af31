"""What the laws of share groups let pass, because Kafka does it or an action allows it."""

from __future__ import annotations

import pytest

from mockbroker.core.events import ShareStartMoved
from mockbroker.core.ids import uuid_text
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replica import Replica
from mockbroker.core.share.in_flight import InFlightBatch, InFlightState
from mockbroker.core.share.operations import INITIALIZE, WRITE
from mockbroker.core.share.partition import ReadGap
from mockbroker.core.share.records import SharePartitionKey, ShareState
from mockbroker.core.share.states import RecordState
from mockbroker.simulation import observe_shares
from mockbroker.simulation.clients.drainer import QUIET_MS
from mockbroker.simulation.laws.shares import SHARE_LAWS
from mockbroker.simulation.plan import Step
from mockbroker.simulation.world import World
from mockbroker_protocol import ErrorCode
from tests.simulation.breaking_shares import Sharing, written
from tests.simulation.meddling import append, batch_of, coordinated, partition_of
from tests.support.share_states import initialize_request, write_request

ACCEPT = 1


def _broken(world: World) -> set[str]:
    """The laws of share groups that are broken; meddling breaks others, too."""
    return {violation.law for violation in world.laws.violations} & {law.name for law in SHARE_LAWS}


def _states(world: World) -> Partition:
    return world.cluster.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC).partitions[0]


@pytest.mark.parametrize("start", [3, 4])
def test_the_start_offset_may_go_back_to_that_of_a_repeated_write(world: World, start: int) -> None:
    group = Sharing(world)
    group.acknowledges("m", 4, 4, [ACCEPT])
    written(world, ShareState(0, 3, 0))
    topic_id = partition_of(world).topic.topic_id
    request = write_request(topic_id, {0: []}, start=3)
    for each in world.cluster.topics[SHARE_GROUP_STATE_TOPIC].partitions:
        each.leader_id = -1  # the persister finds no coordinator
    group.broker.share_persister.send(WRITE, request, lambda _: None)
    _states(world).leader_id = 1
    key = SharePartitionKey("g", topic_id, 0)
    assert list(group.broker.share_persister.repeated_writes()) == [(key, 3)]
    written(world, ShareState(1, 5, 0), ShareState(2, start, 0))
    group.fetches("n", (4, 4, 1))
    expected = {
        "share partitions' states rise",
        "acknowledged records are not delivered again",
    }
    assert _broken(world) == (set() if start == 3 else expected)


@pytest.mark.parametrize("start", [3, 4])
def test_the_start_offset_may_go_back_to_that_of_a_write_that_a_later_one_has_overtaken(
    world: World, start: int
) -> None:
    """It has not failed: it is on its way to a coordinator that has not answered."""
    group, states = Sharing(world), _states(world)
    others = [n for n in states.replicas if n != group.partition.leader_id]
    for each in states.topic.partitions:
        each.leader_id = others[0]
    written(world, ShareState(0, 3, 0))
    world.perform(0, Step(at_ms=0, do="delay_network", arguments={"nodes": others, "by": 500}))
    topic_id = group.partition.topic.topic_id
    group.broker.share_persister.send(
        WRITE, write_request(topic_id, {0: []}, start=3), lambda _: None
    )
    assert list(group.broker.share_persister.repeated_writes()) == []
    written(world, ShareState(1, 5, 0), ShareState(2, start, 0))
    assert _broken(world) == (set() if start == 3 else {"share partitions' states rise"})


@pytest.mark.parametrize("epoch", [3, 4])
def test_a_second_initialization_begins_a_state_anew(world: World, epoch: int) -> None:
    group, states = Sharing(world), _states(world)
    broker = world.cluster.processes[coordinated(world).partition.leader_id]
    topic_id = partition_of(world).topic.topic_id
    for each in states.topic.partitions:
        each.leader_id = -1
    broker.share_persister.send(
        INITIALIZE, initialize_request(topic_id, 0, state_epoch=3), lambda _: None
    )
    states.leader_id = 1
    written(world, ShareState(0, 0, 0, state_epoch=2))
    group.acknowledges("m", 4, 4, [ACCEPT])
    written(world, ShareState(1, 0, 0, state_epoch=epoch))
    group.fetches("n", (4, 4, 1))
    expected = {"acknowledged records are not delivered again"}
    assert _broken(world) == (set() if epoch == 3 else expected)


@pytest.mark.parametrize("how", ["another leader", "loaded anew"])
@pytest.mark.parametrize("deleted", [False, True])
def test_a_new_coordinator_does_not_know_what_an_action_has_deleted(
    world: World, how: str, *, deleted: bool
) -> None:
    written(world, ShareState(0, 5, 0, state_epoch=2))
    states = _states(world)
    where = {"topic": SHARE_GROUP_STATE_TOPIC if deleted else "orders", "partition": 0}
    world.perform(0, Step(at_ms=0, do="delete_records", arguments=where))
    world.look()
    written(world, ShareState(1, 5, 0, state_epoch=2))
    if how == "another leader":
        world.perform(1, Step(at_ms=0, do="stop_broker", arguments={"node": states.leader_id}))
    written(world, ShareState(1, 0, 0, state_epoch=1))
    assert _broken(world) == (set() if deleted else {"share partitions' states rise"})


@pytest.mark.parametrize("knows", [False, True])
def test_an_acknowledgement_may_be_lost_with_a_coordinator_that_an_unclean_election_has_deposed(
    world: World, *, knows: bool
) -> None:
    states = _states(world)
    former, group = states.leader_id, Sharing(world)
    follower = next(n for n in states.replicas if n != former)
    states.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    states.isr = [former]
    cut = {"nodes": [former], "both_ways": False, "fence_after": 1_000_000}
    world.perform(0, Step(at_ms=0, do="cut_network", arguments=cut))
    world.cluster.elect_unclean(SHARE_GROUP_STATE_TOPIC, 0, follower)
    world.look()
    if not knows:
        group.acknowledges("m", 0, 0, [ACCEPT])
    world.perform(1, Step(at_ms=0, do="heal_network"))
    world.look()
    if knows:
        group.acknowledges("m", 0, 0, [ACCEPT])
    group.fetches("n", (0, 0, 1))
    expected = {"acknowledged records are not delivered again"}
    assert _broken(world) == (expected if knows else set())


@pytest.mark.parametrize("gap_start", [None, 0, 1])
def test_a_gap_below_the_log_start_offset_keeps_available_records_back(
    world: World, gap_start: int | None
) -> None:
    group = Sharing(world)
    append(group.partition, batch_of())
    group.partition.delete_records(-1)
    group.share.start_offset = 1
    append(group.partition, batch_of())
    group.share.batches.add(InFlightBatch(1, 1, InFlightState(RecordState.AVAILABLE, 1)))
    group.share.end_offset = 1
    if gap_start is not None:
        group.share.read_gap = ReadGap(gap_start, 1)
    group.fetches("m")
    expected = {"available records are delivered"}
    assert _broken(world) == (set() if gap_start == 0 else expected)


@pytest.mark.parametrize("loses", [False, True])
def test_a_fetch_that_moves_the_start_offset_to_the_log_start_is_answered_without_records(
    world: World, *, loses: bool
) -> None:
    """Also if the law begins anew between the move and the answer."""
    group = Sharing(world)
    group.in_flight(RecordState.AVAILABLE)
    topic_id = uuid_text(group.share.key[1])
    event = ShareStartMoved(
        at_ms=0,
        node_id=1,
        group="g",
        topic="orders",
        topic_id=topic_id,
        partition=0,
        state_epoch=0,
        change="moved",
        former_offset=0,
        offset=0,
        reason="log_start",
        cause="",
    )
    if loses:
        world.laws.share_losses += 1
    world.laws.on_event(event)
    group.fetches("m")
    assert _broken(world) == set()
    world.clock.now_ms += 1
    group.fetches("m")
    assert _broken(world) == {"available records are delivered"}


@pytest.mark.parametrize("count", [1, 2])
def test_a_release_counts_as_often_as_the_record_was_delivered_before_it(
    world: World, count: int
) -> None:
    """The answer that gives the record once more is not written when the leader moves."""
    group = Sharing(world)
    group.fetches("m", (0, 0, 1))
    group.releases_and_gets("m", 0, 2)
    group.broker.share_partitions.fence(group.share)
    Sharing(world).fetches("n", (0, 0, count))
    expected = {"delivery counts rise to their limit"}
    assert _broken(world) == (set() if count == 2 else expected)


@pytest.mark.parametrize("count", [2, 3])
def test_a_write_of_the_share_partition_of_before_may_be_preferred(
    world: World, count: int
) -> None:
    """It has not arrived, and its delivery count is higher than that of the acknowledgement."""
    group = Sharing(world)
    topic_id = partition_of(world).topic.topic_id
    _states(world)
    for each in world.cluster.topics[SHARE_GROUP_STATE_TOPIC].partitions:
        each.leader_id = -1  # the persister finds no coordinator
    late = write_request(topic_id, {0: [(4, 4, RecordState.AVAILABLE, count)]})
    group.broker.share_persister.send(WRITE, late, lambda _: None)
    state = InFlightState(RecordState.ACQUIRED, 2, "m", world.clock.now_ms + 1_000)
    group.share.batches.add(InFlightBatch(4, 4, state))
    group.acknowledges("m", 4, 4, [ACCEPT])
    group.fetches("n", (4, 4, 4))
    expected = {"acknowledged records are not delivered again"}
    assert _broken(world) == (set() if count == 3 else expected)


@pytest.mark.parametrize(
    ("do", "topic", "excused"),
    [
        ("delete_records", "orders", False),
        ("delete_records", SHARE_GROUP_STATE_TOPIC, True),
        ("recreate_topic", "orders", False),
        ("recreate_topic", SHARE_GROUP_STATE_TOPIC, True),
        ("recreate_topic", GROUP_METADATA_TOPIC, True),  # the epochs of its states are higher
    ],
)
def test_a_last_member_finds_no_end_where_a_coordinator_lost_its_records(
    world: World, do: str, topic: str, *, excused: bool
) -> None:
    _states(world)
    world.cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    where = {"topic": topic} | ({"partition": 0} if do == "delete_records" else {})
    world.perform(0, Step(at_ms=0, do=do, arguments=where))
    world.history.draining.add("g")
    world.laws.conclude()
    law = "share groups come to rest"
    broken = {violation.law for violation in world.laws.violations} & {law}
    assert broken == (set() if excused else {law})


def _never_rests(world: World) -> bool:
    """Whether the law of rest is broken for the group's last member."""
    world.laws.conclude()
    return "share groups come to rest" in {each.law for each in world.laws.violations}


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
@pytest.mark.parametrize("leads_anew", [False, True])
def test_a_share_partition_of_a_former_leader_epoch_may_refuse_the_last_member_for_ever(
    world: World, error: ErrorCode, *, leads_anew: bool
) -> None:
    group = Sharing(world)
    world.history.draining.add("g")
    if leads_anew:
        partition = group.partition
        partition.become_leader(partition.leader_id, partition.leader_epoch + 1, partition.isr)
    for _ in range(2):
        group.last_member_hears(error)
        world.clock.now_ms += QUIET_MS
    is_excused = leads_anew and error is ErrorCode.FENCED_LEADER_EPOCH
    assert _never_rests(world) is not is_excused


@pytest.mark.parametrize("is_reset", [True, False])
@pytest.mark.parametrize("has_state", [True, False])
def test_states_may_be_deleted_after_a_member_has_initialized_them_again(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_reset: bool, has_state: bool
) -> None:
    """By a deletion of offsets that a persister repeats."""
    topic_id = partition_of(world).topic.topic_id
    if has_state:
        written(world, ShareState(0, 0, 0, state_epoch=2))
    key = SharePartitionKey("g", topic_id, 0)
    monkeypatch.setattr(observe_shares, "initialized_partitions", lambda *_: [key])
    if is_reset:
        world.laws.reset_groups.add("g")
    world.history.draining.add("g")
    assert _never_rests(world) is not (is_reset and not has_state)


@pytest.mark.parametrize("gets_records", [False, True])
def test_such_a_share_partition_excuses_no_records_that_come_for_ever(
    world: World, *, gets_records: bool
) -> None:
    group = Sharing(world)
    world.history.draining.add("g")
    partition = group.partition
    partition.become_leader(partition.leader_id, partition.leader_epoch + 1, partition.isr)
    for count in range(1, 4):
        group.last_member_hears(ErrorCode.FENCED_LEADER_EPOCH)
        if gets_records:
            group.last_member_hears(ErrorCode.NONE, (0, 0, count))
        world.clock.now_ms += QUIET_MS // 2
    assert _never_rests(world) is gets_records
