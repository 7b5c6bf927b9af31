"""Replicas through failures: their records, leaders, and losses."""

from __future__ import annotations

import random

import pytest

from mockbroker.core.events import FollowerFetched, LogTruncated
from mockbroker.core.replication.reassignment import reassign
from mockbroker_protocol import ErrorCode
from tests.support.replicas import Replicas, error_of, waiting

STEPWISE = {"mockbroker.replication": "stepwise"}
UNCLEAN = "unclean"


def mode(truncation: str) -> dict[str, str]:
    return STEPWISE | {"mockbroker.replication.truncation": truncation}


def truncations(node: Replicas) -> list[tuple[int, int, int]]:
    """(broker, log end before, log end after) of each cut, so far."""
    return [
        (event.node_id, event.former_end_offset, event.offset)
        for event in node.events
        if isinstance(event, LogTruncated)
    ]


# -- sharing and parting ---------------------------------------------------------------------------


def test_followers_share_the_leaders_log_until_something_delays_them():
    node = Replicas()
    node.sent("a")
    assert node.with_own_replica() == []
    node.hold(2)
    node.sent("b", acks=1)
    assert (node.with_own_replica(), node.ends()) == ([2], {1: 2, 2: 1, 3: 2})
    node.release(2)
    node.settle()
    assert (node.with_own_replica(), node.ends()) == ([], {1: 2, 2: 2, 3: 2})
    assert node.partition._watchers == {}


def test_a_stopped_broker_keeps_what_it_had():
    node = Replicas()
    node.sent("a")
    node.cluster.stop_broker(3)
    node.sent("b")
    assert node.contents() == {1: "a b", 2: "a b", 3: "a"}
    node.cluster.start_broker(3)
    assert node.leadership() == (1, 0, [1, 2])
    node.settle()
    assert (node.leadership(), node.with_own_replica()) == ((1, 0, [1, 2, 3]), [])


def test_a_topic_created_without_a_broker_waits_for_it():
    node = Replicas()
    node.cluster.stop_broker(3)
    (partition,) = node.cluster.create_topic("later", assignments={0: [1, 2, 3]}).partitions
    assert (partition.isr, partition.replica(3).log.end_offset) == ([1, 2], 0)
    node.cluster.start_broker(3)
    node.settle()
    assert partition.isr == [1, 2, 3]


def test_a_deleted_topic_stops_its_followers():
    node = Replicas(configs=STEPWISE)
    node.send("a")
    partition = node.partition
    node.cluster.delete_topic("t")
    node.advance(100_000)
    assert partition._watchers == {}


def test_a_broker_below_the_log_start_begins_again_there():
    node = Replicas()
    node.sent("a", "b")
    node.cluster.stop_broker(3)
    node.sent("c")
    node.sent("d")
    node.partition.delete_records(4)
    node.sent("e")
    node.cluster.start_broker(3)
    node.settle()
    assert node.contents() == {1: "e", 2: "e", 3: "e"}
    assert node.starts() == {1: 4, 2: 4, 3: 4}


def test_every_replica_has_the_states_of_idempotent_producers():
    """A retry is recognised by the leader after a failure too."""
    node = Replicas(configs=STEPWISE)
    from tests.support.requests import batch_of, only

    def produce() -> tuple[int, int]:
        batch = batch_of(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
        answer = node.produce(batch, broker=node.partition.leader_id)
        node.settle()
        return only(answer).error_code, only(answer).base_offset

    assert produce() == (0, 0)
    node.cluster.stop_broker(1, UNCLEAN)
    assert node.partition.leader_id == 2
    assert produce() == (0, 0)
    assert node.partition.log_end_offset == 1


# -- controlled and uncontrolled ends --------------------------------------------------------------


@pytest.mark.covers("S60", "S89")
def test_a_controlled_shutdown_moves_the_leader_first():
    """Leader 3 of replicas 3, 2, 1: then 2 leads under epoch 1, with ISR 2, 1."""
    node = Replicas(replicas=[3, 2, 1])
    node.sent("a")
    node.cluster.stop_broker(3)
    assert node.leadership() == (2, 1, [2, 1])
    assert node.sent("b").error_code == 0
    node.cluster.start_broker(3)
    node.settle()
    assert node.leadership() == (2, 1, [1, 2, 3])
    assert node.contents() == {3: "a b", 2: "a b", 1: "a b"}


@pytest.mark.covers("S61", "S68")
@pytest.mark.parametrize("how", ["controlled", UNCLEAN])
def test_a_partition_whose_isr_is_gone_waits_for_it(how):
    """No leader, errors for clients, and all its records when the broker returns."""
    node = Replicas()
    node.sent("a")
    node.cluster.shrink_isr("t", 0, nodes=[2, 3])
    assert node.sent("b").error_code == 0
    node.cluster.stop_broker(1, how)
    assert node.leadership() == (-1, 1, [])
    assert (node.partition.elr, node.partition.last_known_elr) == ((1,), (1,))
    node.release(2, 3)
    node.advance(100_000)
    assert node.leadership() == (-1, 1, [])
    assert error_of(node.send("x", broker=2)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.fetched(("t", 0, 0), broker=2, version=10).error_code == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    node.cluster.start_broker(1)
    assert node.leadership() == (1, 2, [1])
    node.settle()
    assert node.leadership() == (1, 2, [1, 2, 3])
    assert node.contents() == {1: "a b", 2: "a b", 3: "a b"}


@pytest.mark.covers("S69")
@pytest.mark.parametrize("how", ["config", "command"])
def test_an_unclean_election_loses_what_only_the_dead_leader_had(how):
    """B is behind by three acknowledged records and leads: those three are gone for good."""
    config = {"unclean_leader_election_enable": "true"} if how == "config" else {}
    node = Replicas(2, **config)
    node.sent("a")
    node.cluster.shrink_isr("t", 0, nodes=[2])
    for value in ("b", "c", "d"):
        assert node.sent(value).error_code == 0
    node.cluster.stop_broker(1, UNCLEAN)
    if how == "command":
        assert node.partition.leader_id == -1
        from mockbroker.core.replication.elections import elect_unclean_leader

        elect_unclean_leader(node.cluster.replication_control, "t", 0)
    assert node.leadership()[::2] == (2, [2])
    node.release(2)
    assert node.read() == "a"
    assert node.sent("x", "y").base_offset == 1
    node.cluster.start_broker(1)
    node.settle()
    assert node.contents() == {1: "a x y", 2: "a x y"}
    assert node.partition.isr == [1, 2]
    assert truncations(node) == [(1, 4, 1)]


def test_two_replicas_may_hold_different_records_at_one_offset_and_both_can_be_read():
    """Until the old leader has cut its log, a consumer that may read from it sees the other one."""
    node = Replicas(2, configs=STEPWISE, unclean_leader_election_enable="true")
    node.sent("a")
    node.advance(500)
    node.cluster.shrink_isr("t", 0, nodes=[2])
    node.sent("old")
    node.cluster.stop_broker(1, UNCLEAN)
    node.sent("new")
    node.hold(1)
    node.release(2)
    node.cluster.start_broker(1)
    node.settle()
    assert node.contents() == {1: "a old", 2: "a new"}
    assert (node.read(broker=1), node.read(broker=2)) == ("a old", "a new")
    node.release(1)
    node.settle()
    assert node.contents() == {1: "a new", 2: "a new"}


def test_a_fresh_leader_does_not_know_the_watermark_until_its_followers_fetch():
    """It says so to whoever asks for offsets: 78 (KIP-207)."""
    from mockbroker.handlers.list_offsets import list_offsets
    from mockbroker_protocol.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    node = Replicas(configs=STEPWISE)
    node.sent("a")
    node.hold(2, 3)
    node.cluster.stop_broker(1, UNCLEAN)
    assert node.leadership() == (2, 1, [2, 3])
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, -1)])])

    def latest() -> tuple[int, int]:
        (topic,) = list_offsets(node.ctx(7, broker=2), request).topics
        return topic.partitions[0].error_code, topic.partitions[0].offset

    assert latest() == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    node.release(3)
    node.settle()
    assert latest() == (0, 1)


# -- divergence ------------------------------------------------------------------------------------


def diverged(truncation: str) -> Replicas:
    """A (1) has m1 m2 m3, B (2) m1 m2, C (3) m1; the watermark is 1. A dies, B leads, writes on."""
    node = Replicas(configs=mode(truncation))
    node.sent("m1")
    node.advance(1000)
    node.hold(3)
    node.send("m2", acks=1)
    node.settle()
    node.hold(2)
    node.send("m3", acks=1)
    assert node.contents() == {1: "m1 m2 m3", 2: "m1 m2", 3: "m1"}
    assert node.partition.high_watermark == 1
    node.cluster.stop_broker(1, UNCLEAN)
    assert node.leadership() == (2, 1, [2, 3])
    node.release(2, 3)
    node.settle()
    node.send("m4", "m5", "m6", acks=1)
    node.settle()
    return node


@pytest.mark.covers("S81")
@pytest.mark.parametrize("truncation", ["fetch", "epoch", "hw"])
def test_the_five_steps_of_divergence_end_alike_everywhere(truncation):
    node = diverged(truncation)
    node.hold(1)
    node.cluster.start_broker(1)
    node.settle()
    assert node.leadership() == (2, 1, [2, 3])
    node.release(1)
    node.settle()
    assert node.contents() == dict.fromkeys((1, 2, 3), "m1 m2 m4 m5 m6")
    assert node.ends() == {1: 5, 2: 5, 3: 5}
    assert node.leadership() == (2, 1, [1, 2, 3])


@pytest.mark.covers("S82")
@pytest.mark.parametrize(("truncation", "offset"), [("fetch", 2), ("epoch", 2), ("hw", 1)])
def test_the_epoch_keeps_one_record_more_than_the_watermark(truncation, offset):
    """A cuts to m1 m2 by epochs, and to m1 alone by its watermark."""
    node = diverged(truncation)
    node.events.clear()
    node.cluster.start_broker(1)
    node.settle()
    assert truncations(node) == [(1, 3, offset)]
    assert node.content(1) == "m1 m2 m4 m5 m6"


@pytest.mark.covers("S83")
def test_the_shortest_log_of_the_isr_may_lead_and_nothing_committed_is_lost():
    """C in step 2: m2 and m3 are gone; the watermark was 1."""
    node = Replicas(configs=STEPWISE)
    node.sent("m1")
    node.advance(1000)
    node.hold(3)
    node.send("m2", acks=1)
    node.settle()
    node.hold(2)
    node.send("m3", acks=1)
    node.cluster.stop_broker(1, UNCLEAN)
    node.cluster.move_leader("t", 0, 3)
    node.release(2, 3)
    node.settle()
    node.cluster.start_broker(1)
    node.settle()
    assert node.contents() == dict.fromkeys((1, 2, 3), "m1")


@pytest.mark.covers("S80")
@pytest.mark.parametrize(("truncation", "kept"), [("hw", ""), ("epoch", "m1"), ("fetch", "m1")])
def test_a_record_is_lost_when_a_follower_truncates_to_a_late_watermark(truncation, kept):
    """m1 is acknowledged: the leader's watermark is 1, the follower has not heard of it yet. The
    follower restarts, and the leader dies.
    """
    node = Replicas(2, configs=mode(truncation))
    answer = node.send("m1")
    node.settle()
    assert (error_of(answer), node.high_watermarks()) == (0, {1: 1, 2: 0})
    node.cluster.stop_broker(2, UNCLEAN)
    node.cluster.start_broker(2)
    # The leader dies before it has answered the follower's first fetch: still, a follower
    # that trusts its watermark has cut its log by then.
    node.cluster.stop_broker(1, UNCLEAN)
    if node.partition.leader_id < 0:
        node.cluster.elect_unclean("t", 0, 2)
    assert node.read() == kept


def test_a_leader_killed_and_back_at_once_has_all_its_records():
    node = Replicas()
    node.sent("a")
    for node_id in (2, 3, 1):
        node.cluster.stop_broker(node_id, UNCLEAN)
    assert node.leadership() == (-1, 1, [])
    for node_id in (2, 3):
        node.cluster.start_broker(node_id)
        node.settle()
    assert node.partition.leader_id == -1
    node.cluster.start_broker(1)
    node.settle()
    assert node.leadership() == (1, 2, [1, 2, 3])
    assert node.read() == "a"


def test_a_new_election_in_the_middle_of_catching_up():
    """Late answers of a leader that is none any more are not appended."""
    node = Replicas(configs=STEPWISE)
    node.cluster.replication.network.delay([(2, 1), (1, 2), (3, 1), (1, 3)], 10)
    node.cluster.replication.links_changed()
    node.send("a", acks=1)
    node.advance(5)
    node.cluster.elect_unclean("t", 0, 3)
    node.send("b", acks=1)
    node.advance(1000)
    assert node.contents() == dict.fromkeys((1, 2, 3), "b")
    answer = node.send("c")
    node.advance(20)
    assert error_of(answer) == 0


# -- any schedule ----------------------------------------------------------------------------------


@pytest.mark.covers("S77")
@pytest.mark.parametrize("seed", range(40))
def test_nothing_acknowledged_by_all_is_lost_as_long_as_elections_are_clean(seed):
    """Brokers stop, die, pause, lag and come back, links are slow: what got acks=all stays, and
    the watermarks keep their order.
    """
    draw = random.Random(seed)
    brokers = draw.choice([3, 4])
    node = Replicas(
        brokers,
        replicas=[1, 2, 3],
        configs={
            "mockbroker.replication": draw.choice(["direct", "stepwise"]),
            "replica.lag.time.max.ms": "2000",
        },
        min_insync_replicas=draw.choice(["1", "2"]),
    )
    world = World(node, draw)
    for _ in range(150):
        world.step()
        world.check()
    world.mend()
    for value in world.acknowledged:
        assert value in node.read().split(), (seed, value)
    assert len(set(node.contents().values())) == 1


class World:
    """Random things that happen to a cluster."""

    def __init__(self, node: Replicas, draw: random.Random) -> None:
        self.node = node
        self.draw = draw
        self.acknowledged: list[str] = []
        self.unanswered: dict[str, object] = {}
        self.count = 0
        self.watermark = (0, 0)  # leader epoch and high watermark

    def step(self) -> None:
        node, draw = self.node, self.draw
        cluster = node.cluster
        node_id = draw.choice([1, 2, 3])
        state = cluster.brokers[node_id].state
        dice = draw.random()
        if dice < 0.5:
            self.produce()
        elif dice < 0.6 and state == "running":
            cluster.stop_broker(
                node_id, draw.choice(["controlled", UNCLEAN]), draw.choice([None, 500])
            )
        elif dice < 0.75 and state == "stopped":
            cluster.start_broker(node_id)
        elif dice < 0.78 and state == "running":
            cluster.pause_broker(node_id, draw.choice([100, 3000]))
        elif dice < 0.85 and state == "paused":
            cluster.resume_broker(node_id)
        elif dice < 0.9:
            node.hold(node_id)
        elif dice < 0.95:
            node.release(node_id)
        elif dice < 0.97:
            other = draw.choice([n for n in (1, 2, 3) if n != node_id])
            cluster.replication.network.delay([(node_id, other)], draw.choice([0, 5, 300]))
            cluster.replication.links_changed()
        node.advance(draw.choice([0, 0, 1, 100, 2500]))
        self.collect()

    def produce(self) -> None:
        leader = self.node.partition.leader_id
        if leader > 0 and self.node.cluster.brokers[leader].state == "running":
            value = f"v{self.count}"
            self.count += 1
            self.unanswered[value] = self.node.send(value, timeout_ms=10_000)

    def collect(self) -> None:
        for value, answer in list(self.unanswered.items()):
            if not waiting(answer):
                del self.unanswered[value]
                if error_of(answer) == 0:
                    self.acknowledged.append(value)

    def check(self) -> None:
        partition = self.node.partition
        log = partition.log
        assert log.start_offset <= partition.last_stable_offset
        assert partition.last_stable_offset <= partition.high_watermark <= log.end_offset
        for own in partition.own_replicas.values():
            assert own.log.start_offset <= own.high_watermark <= own.log.end_offset
        now = (partition.leader_epoch, partition.high_watermark)
        if now[0] == self.watermark[0]:
            assert now >= self.watermark, "the watermark went back under one leader"
        self.watermark = now
        assert partition.leader_id == -1 or partition.leader_id in partition.isr

    def mend(self) -> None:
        cluster = self.node.cluster
        cluster.replication.network.heal()
        cluster.replication.links_changed()
        for node_id in (1, 2, 3):
            self.node.release(node_id)
            if cluster.brokers[node_id].state == "paused":
                cluster.resume_broker(node_id)
        for node_id in (1, 2, 3):
            if cluster.brokers[node_id].state == "stopped":
                cluster.start_broker(node_id)
        self.node.advance(100_000)
        assert sorted(self.node.partition.isr) == [1, 2, 3]


def test_a_topic_created_while_a_broker_is_paused_is_empty_there():
    """Nor before the broker is fenced: it is in the ISR, and gets nothing."""
    node = Replicas()
    node.cluster.pause_broker(3, fence_after_ms=10_000)
    node.cluster.create_topic("late", assignments={0: [1, 2, 3]})
    (partition,) = node.cluster.topics["late"].partitions
    assert partition.isr == [1, 2, 3]
    assert sorted(partition.own_replicas) == [3]


def test_an_ended_process_joins_no_isr_although_it_had_caught_up():
    """The leader's request is on its way when the broker loses its power and comes back with less;
    the controller sees that another process had caught up (KIP-903).
    """
    node = Replicas(configs={"replica.lag.time.max.ms": "1000"})
    node.cluster.stop_broker(3)
    node.sent("a")
    node.cluster.start_broker(3)
    node.cluster.delay_network(2, 1, by_ms=300)
    node.cluster.move_leader("t", 0, 2)
    node.advance(100)
    assert (node.partition.isr_in_flight, node.ends()[3]) == ([1, 2, 3], 1)
    node.cluster.stop_broker(3, "power_loss")
    node.cluster.cut_network(3, 2)
    node.cluster.start_broker(3)
    assert node.ends()[3] == 0
    node.advance(2_000)
    assert 3 not in node.partition.isr
    node.cluster.heal_network()
    node.advance(2_000)
    assert (node.partition.isr, node.ends()[3]) == ([1, 2, 3], 1)


def test_new_replicas_have_a_directory_before_anybody_asks_for_it():
    """In the order of their creation; here the last one is asked for first."""
    node = Replicas(configs={"log.dirs": "/a,/b"})
    assignments = {index: [1, 2, 3] for index in range(3)}
    created = node.cluster.create_topic("more", assignments=assignments).partitions
    log_dirs = node.cluster.brokers[2].log_dirs
    assert [log_dirs.dir_of(each) for each in reversed(created)] == ["/b", "/a", "/b"]


def test_a_replica_that_is_removed_leaves_room_in_its_directory():
    node = Replicas(configs={"log.dirs": "/a,/b"})
    control, log_dirs = node.cluster.replication_control, node.cluster.brokers[3].log_dirs
    node.cluster.create_topic("b", assignments={0: [3]})
    reassign(control, "t", 0, [1, 2], may_change_factor=True)
    assert log_dirs.recovery_points == {}
    after = node.cluster.create_topic("after", assignments={0: [3], 1: [3]}).partitions
    assert [log_dirs.dir_of(each) for each in after] == ["/a", "/a"]


def test_each_fetch_of_a_follower_is_an_event_with_its_offset_and_its_limits():
    node = Replicas(2)
    node.sent("a")
    node.hold(2)
    node.send("b", acks=1)
    node.release(2)
    node.settle()
    fetches = [each for each in node.events if isinstance(each, FollowerFetched)]
    limits = node.cluster.replication.fetch_limits
    first = FollowerFetched(node.now_ms, "t", 0, 2, 1, 0, 1, 0, *limits)
    assert (fetches[0], [each.offset for each in fetches]) == (first, [1, 2])
