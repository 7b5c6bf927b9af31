"""What a law lets pass, because Kafka does it or an action allows it."""

from __future__ import annotations

import pytest

from mockbroker.core.events import (
    RecordsRemoved,
)
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import NO_LEADER
from mockbroker.core.replication.replica import Replica
from mockbroker.simulation.history import Commit, FetchedOffset, Owned
from mockbroker.simulation.laws.base import TIME_GOES_ON
from mockbroker.simulation.plan import Step
from mockbroker.simulation.script import Call
from mockbroker.simulation.world import AT_ONCE_MAX, LivelockError, World
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.elect_leaders import ElectLeadersRequest
from mockbroker_protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from tests.simulation.meddling import (
    append,
    batch_of,
    coordinated,
    group_call,
    partition_of,
    sent_of,
)


def test_an_unclean_election_may_take_what_was_acknowledged(world: World) -> None:
    partition = partition_of(world)
    batch = batch_of()
    append(partition, batch)
    world.history.acked.append(sent_of(partition, batch, 0))
    follower = next(n for n in partition.replicas if n != partition.leader_id)
    partition.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    partition.isr = [node_id for node_id in partition.isr if node_id != follower]
    world.cluster.elect_unclean("orders", 0, follower)
    world.look()
    world.laws.conclude()
    assert "acknowledged records are kept" not in {v.law for v in world.laws.violations}


def test_a_deletion_may_take_what_was_acknowledged(world: World) -> None:
    partition = partition_of(world)
    batch = batch_of()
    append(partition, batch)
    world.history.acked.append(sent_of(partition, batch, 0))
    partition.delete_records(-1)
    world.laws.conclude()
    assert world.laws.violations == []


@pytest.mark.parametrize("former", [False, True])
def test_a_commit_for_a_topic_that_was_deleted_is_not_of_its_successor(
    world: World, *, former: bool
) -> None:
    former_id = partition_of(world).topic.topic_id
    world.perform(0, Step(at_ms=0, do="recreate_topic", arguments={"topic": "orders"}))
    topic_id = former_id if former else partition_of(world).topic.topic_id
    commit = Commit("g", "orders", 0, 5, 1, topic_id)
    commit.acked = 2
    world.history.commits.append(commit)
    world.history.found.append(FetchedOffset("g", "orders", 0, -1, 3, 4, 0))
    world.laws.conclude()
    assert (world.laws.violations == []) is former


def test_a_commit_that_may_still_be_carried_out_explains_an_earlier_offset(world: World) -> None:
    late, known = Commit("g", "orders", 0, 3, 1), Commit("g", "orders", 0, 12, 2)
    late.acked, late.doubtful, known.acked = 2, True, 3
    world.history.commits += [late, known]
    world.history.found.append(FetchedOffset("g", "orders", 0, 3, 4, 5, 0))
    world.laws.conclude()
    assert world.laws.violations == []


@pytest.mark.parametrize("what", ["heartbeat", "leave"])
def test_a_refused_request_does_not_show_that_its_member_still_had_its_partitions(
    what: str, world: World
) -> None:
    own = frozenset({(bytes(16), 0)})
    group_call(world, "join", "a", 2, protocol="consumer").assigned = own
    group_call(world, "join", "b", 3, protocol="consumer").assigned = own
    refused = group_call(world, what, "a", 2, protocol="consumer", error=25)  # UNKNOWN_MEMBER_ID
    refused.owned = frozenset()
    world.laws.conclude()
    assert world.laws.violations == []


@pytest.mark.parametrize("loaded", [False, True])
def test_a_heartbeat_is_judged_unless_a_coordinator_loads(world: World, *, loaded: bool) -> None:
    coordinated(world)
    group_call(world, "sync", "a", 4)
    step = Step(at_ms=0, do="unload_coordinator", arguments={"key": "g", "load": 500})
    world.perform(0, step)
    if loaded:
        world.clock.now_ms += 500
        world.cluster.runtime.timers.run_due(world.clock.now_ms)
        world.look()
    group_call(world, "heartbeat", "b", 3)
    world.laws.conclude()
    assert ("earlier generations are refused" in {v.law for v in world.laws.violations}) is loaded


@pytest.mark.parametrize("what", ["heartbeat", "join", "sync", "commit"])
@pytest.mark.parametrize("knows", [False, True])
def test_a_deposed_coordinator_answers_what_is_not_written_until_it_hears_of_it(
    world: World, what: str, *, knows: bool
) -> None:
    leader_id = coordinated(world).partition.leader_id
    cut = {"nodes": [leader_id], "both_ways": False, "fence_after": 0}
    world.perform(0, Step(at_ms=0, do="cut_network", arguments=cut))
    world.look()
    assert world.cluster.topics["__consumer_offsets"].partitions[0].leader_id != leader_id
    if knows:
        world.perform(1, Step(at_ms=0, do="heal_network"))
        world.look()
    group_call(world, "sync", "a", 4).assignments = {"a": b"a"}
    group_call(world, what, "b", 3)
    world.laws.conclude()
    broken = "earlier generations are refused" in {v.law for v in world.laws.violations}
    assert broken is (knows or what == "commit")


@pytest.mark.parametrize("waited_ms", [45_000, 60_000])
def test_an_acknowledgement_waits_for_five_attempts_to_write_its_state(
    world: World, waited_ms: int
) -> None:
    since_ms = world.clock.now_ms
    world.clock.now_ms += waited_ms
    request = ShareAcknowledgeRequest("g", "m", 1, topics=[])
    world.laws.timed_out("m", Call(1, ApiKey.SHARE_ACKNOWLEDGE, 1, request, waited_ms), since_ms)
    late = "requests are answered in time" in {v.law for v in world.laws.violations}
    assert late is (waited_ms == 60_000)


@pytest.mark.parametrize("by_ms", [1_000, 10_000])
def test_a_forwarded_request_takes_the_delays_of_both_ways(world: World, by_ms: int) -> None:
    slow = Step(at_ms=0, do="delay_network", arguments={"nodes": [3], "by": by_ms})
    world.perform(0, slow)
    world.clock.now_ms += 50_000
    since_ms = world.clock.now_ms
    world.clock.now_ms += 40_000
    request = ElectLeadersRequest(0, None, 1_000)
    world.laws.timed_out("a", Call(3, ApiKey.ELECT_LEADERS, 2, request, 40_000), since_ms)
    late = "forwarded requests are answered" in {v.law for v in world.laws.violations}
    assert late is (by_ms == 1_000)


def test_a_forwarded_request_may_be_on_its_way_when_the_links_are_healed(world: World) -> None:
    """Also where no step of the plan heals them, but its end."""
    slow = Step(at_ms=0, do="delay_network", arguments={"nodes": [3], "by": 10_000})
    world.perform(0, slow)
    world.clock.now_ms += 2_000
    since_ms = world.clock.now_ms
    world.clock.now_ms += 500
    world.end_faults()
    world.clock.now_ms += 4_500
    request = ElectLeadersRequest(0, None, 1_000)
    world.laws.timed_out("a", Call(3, ApiKey.ELECT_LEADERS, 2, request, 5_000), since_ms)
    assert "forwarded requests are answered" not in {v.law for v in world.laws.violations}


def test_a_leader_that_an_action_has_dropped_is_elected_when_the_faults_end(world: World) -> None:
    """The controller itself looks for preferred leaders every five minutes only."""
    partition = partition_of(world)
    drop = {"topic": "orders", "partition": partition.index}
    world.perform(0, Step(at_ms=0, do="drop_leader", arguments=drop))
    assert partition.leader_id == NO_LEADER
    world.end_faults()
    assert partition.leader_id in partition.isr


def test_what_goes_round_without_time_passing_is_stopped(world: World) -> None:
    event = RecordsRemoved(0, "orders", "", 0, 0, 0, "retention", "")
    world.clock.now_ms += 1
    for _ in range(AT_ONCE_MAX):
        world.cluster.runtime.emit(event)
    with pytest.raises(LivelockError):
        world.cluster.runtime.emit(event)


def test_time_that_never_ends_is_a_broken_law(monkeypatch: pytest.MonkeyPatch) -> None:
    from mockbroker.simulation import generate, run

    def never_ends(self: World) -> None:
        raise LivelockError("nothing moves")

    monkeypatch.setattr(World, "end_faults", never_ends)
    assert run(generate(1)).laws == [TIME_GOES_ON]


def test_a_leader_that_was_deposed_uncleanly_may_lose_what_it_acknowledges(world: World) -> None:
    partition = partition_of(world)
    former = partition.leader_id
    batch = batch_of()
    append(partition, batch)
    follower = next(n for n in partition.replicas if n != former)
    partition.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    partition.isr = [node_id for node_id in partition.isr if node_id != follower]
    world.cluster.elect_unclean("orders", 0, follower)
    world.look()
    sent = sent_of(partition, batch, 0)
    sent.node_id, sent.acked_ms = former, world.clock.now_ms + 1
    world.history.acked.append(sent)
    world.laws.conclude()
    assert sent.voided == "unclean election"


def test_a_partition_that_a_reassignment_has_stranded_waits_for_an_operator(world: World) -> None:
    partition = partition_of(world)
    partition.become_leader(-1, partition.leader_epoch + 1, [])
    assert any("orders-0 has no leader" in each for each in world.unsettled())
    partition.replicas = [2, 3]
    partition.elr = (1,)
    assert world.unsettled() == []


@pytest.mark.parametrize("client", ["first", "second"])
def test_a_replaced_client_may_read_its_epoch_later_than_the_next(
    world: World, client: str
) -> None:
    for name, epoch in (("first", 4), (client, 2)):
        owned = Owned("consumer", "g", "instance", name, epoch, frozenset(), 0)
        world.history.owned.append(owned)
    world.laws.conclude()
    broken = "partitions are owned once" in {v.law for v in world.laws.violations}
    assert broken is (client == "first")
