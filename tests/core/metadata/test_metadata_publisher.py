"""Brokers that lose the controller: their work meanwhile, and its fate afterwards."""

from __future__ import annotations

import random

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.events import BrokerChanged, ControllerChanged, NetworkChanged
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.ask import ask
from tests.support.replicas import Replicas, error_of, waiting
from tests.support.requests import done, values_of


@pytest.fixture
def node() -> Replicas:
    """Broker 3 leads t-0, broker 1 is the controller; "a" is everywhere."""
    node = Replicas(replicas=[3, 1, 2], min_insync_replicas="2")
    node.sent("a")
    return node


def metadata(node: Replicas, broker: int) -> tuple[list[int], int, int, list[int]]:
    """(brokers, leader, leader epoch, ISR) as one broker tells it."""
    request = MetadataRequest([MetadataRequestTopic(name="t")])
    response = ask(node, ApiKey.METADATA, request, 12, broker=broker)
    (partition,) = response.topics[0].partitions
    brokers = [b.node_id for b in response.brokers]
    return brokers, partition.leader_id, partition.leader_epoch, partition.isr_nodes


def test_the_other_brokers_elect_a_leader_without_the_isolated_one(node):
    node.cluster.cut_network(3)
    node.settle()
    assert metadata(node, 1) == ([1, 2], 1, 1, [1, 2])
    assert metadata(node, 3) == ([1, 2, 3], 3, 0, [3, 1, 2])
    assert node.cluster.brokers[3].fenced
    assert node.sent("b").error_code == 0


@pytest.mark.covers("S74")
def test_an_isolated_leader_appends_records_that_are_lost_and_acknowledges_no_acks_all(node):
    """Its ISR cannot shrink without the controller: acks=all waits until it times out."""
    node.cluster.cut_network(3)
    node.settle()
    lost = node.send("lost", acks=1, broker=3)
    assert error_of(lost) == 0
    waits = node.send("waits", broker=3, timeout_ms=60_000)
    node.sent("kept")
    node.advance(59_999)
    assert waiting(waits)
    node.advance(1)
    assert error_of(waits) == ErrorCode.REQUEST_TIMED_OUT
    assert (node.read(broker=3), node.read(broker=1)) == ("a", "a kept")
    node.cluster.heal_network()
    node.settle()
    assert node.contents() == dict.fromkeys((3, 1, 2), "a kept")
    assert node.leadership() == (1, 1, [1, 2, 3])
    assert metadata(node, 3) == metadata(node, 1)


def test_requests_that_wait_at_an_isolated_leader_are_refused_when_it_is_back(node):
    node.cluster.cut_network(3)
    produce = node.send("x", broker=3, timeout_ms=60_000)
    fetch = node.fetch(("t", 0, 1), broker=3, max_wait_ms=60_000, version=10)
    node.settle()
    assert waiting(produce)
    assert waiting(fetch)
    node.cluster.heal_network()
    assert error_of(produce) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not waiting(fetch)


def test_a_cut_that_heals_before_the_session_expires_changes_no_leader(node):
    """What the leader took meanwhile is replicated then."""
    node.cluster.cut_network(3, fence_after_ms=9000)
    node.advance(5000)
    assert error_of(node.send("b", acks=1, broker=3)) == 0
    waits = node.send("c", broker=3, timeout_ms=60_000)
    assert metadata(node, 1) == ([1, 2, 3], 3, 0, [3, 1, 2])
    node.cluster.heal_network()
    node.advance(10_000)
    assert node.leadership() == (3, 0, [3, 1, 2])
    assert node.contents() == dict.fromkeys((3, 1, 2), "a b c")
    assert not waiting(waits)


def test_the_largest_group_keeps_the_controller(node):
    heard = [e for e in node.events if isinstance(e, ControllerChanged)]
    assert heard == []
    node.cluster.cut_network(1)
    assert node.cluster.controller_id == 2
    assert node.cluster.controller.epoch == 2
    assert node.cluster.brokers[1].fenced
    assert node.leadership() == (3, 0, [3, 2])
    node.cluster.heal_network()
    node.settle()
    assert (node.cluster.controller_id, node.leadership()) == (2, (3, 0, [1, 2, 3]))


def test_brokers_that_are_cut_off_together_replicate_among_themselves():
    """Two of five: the leader among them moves its watermark no further, for its ISR has others."""
    node = Replicas(5, replicas=[4, 5, 1])
    node.sent("a")
    node.cluster.cut_network([4, 5])
    node.settle()
    # They are fenced one after the other: 5 led for a moment.
    assert node.leadership() == (1, 2, [1])
    assert error_of(node.send("x", acks=1, broker=4)) == 0
    node.settle()
    image = node.cluster.brokers[4].image
    assert image is node.cluster.brokers[5].image
    known = image.topics["t"].partitions[0]
    assert {n: known.replica(n).log.end_offset for n in (4, 5)} == {4: 2, 5: 2}
    assert (known.isr, known.high_watermark) == ([4, 5, 1], 1)
    node.cluster.heal_network()
    node.settle()
    assert node.contents() == dict.fromkeys((4, 5, 1), "a")


def test_an_isolated_follower_falls_behind_and_serves_what_it_has():
    node = Replicas()
    node.sent("a")
    node.cluster.cut_network(3)
    node.sent("b")
    assert node.partition.isr == [1, 2]
    assert node.read(broker=3) == "a"
    node.cluster.heal_network()
    node.settle()
    assert node.read(broker=3) == "a b"


def test_a_cut_between_two_followers_and_their_leader_isolates_nobody():
    """Both sides still reach the controller: only the follower lags."""
    node = Replicas(replicas=[2, 3, 1])
    node.cluster.cut_network(2, 3)
    node.send("a", acks=1)
    node.settle()
    assert node.ends() == {2: 1, 3: 0, 1: 1}
    assert not node.cluster.brokers[3].fenced
    node.advance(30_000)
    assert node.partition.isr == [1, 2]
    node.cluster.heal_network(2, 3)
    node.settle()
    assert node.partition.isr == [1, 2, 3]


@pytest.mark.covers("S74")
def test_an_isolated_broker_finds_the_former_coordinators_and_creates_nothing(node):
    node.cluster.ensure_internal_topic("__consumer_offsets")
    leaders = [p.leader_id for p in node.cluster.topics["__consumer_offsets"].partitions]
    node.cluster.cut_network(3)
    index = leaders.index(3)
    group = next(
        g
        for g in (f"g{n}" for n in range(1000))
        if node.cluster.find_coordinator_partition(g) == index
    )
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    for broker, found in ((3, {3}), (1, {1, 2})):
        response = ask(node, ApiKey.FIND_COORDINATOR, request, 4, broker=broker)
        assert response.coordinators[0].node_id in found
    wanted = CreateTopicsRequest([CreatableTopic("new", 1, 1)])
    load_all()
    ctx = node.ctx(5, key=ApiKey.CREATE_TOPICS, broker=3)
    assert waiting(APIS[ApiKey.CREATE_TOPICS].handle(ctx, wanted))
    assert ask(node, ApiKey.CREATE_TOPICS, wanted, 5, broker=1).topics[0].error_code == 0
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["transactions"])
    response = ask(node, ApiKey.FIND_COORDINATOR, request, 4, broker=3)
    assert response.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_an_isolated_broker_that_stops_keeps_its_own_logs(node):
    node.cluster.cut_network(3)
    node.send("x", acks=1, broker=3)
    node.cluster.stop_broker(3)
    with pytest.raises(ActionError, match="way to the controller is cut"):
        node.cluster.start_broker(3)
    assert node.content(3) == "a x"
    node.cluster.heal_network()
    node.cluster.start_broker(3)
    node.settle()
    assert node.content(3) == "a"


def test_a_topic_deleted_meanwhile_is_deleted_on_every_broker(node):
    node.cluster.cut_network(3)
    node.cluster.delete_topic("t")
    assert metadata(node, 3)[1] == 3
    node.cluster.heal_network()
    request = MetadataRequest([MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    (topic,) = ask(node, ApiKey.METADATA, request, 12, broker=3).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_cut_is_an_event(node):
    node.cluster.cut_network(3, fence_after_ms=9000)
    told = [e for e in node.events if isinstance(e, NetworkChanged | BrokerChanged)]
    assert told == [
        NetworkChanged(node.now_ms, "cut", (3,), (1, 2), 0, True),
        BrokerChanged(node.now_ms, 3, "unreachable", 3),
    ]


@pytest.mark.parametrize(
    ("sides", "why"), [((9,), "no broker 9"), ((1, []), "no broker on one side")]
)
def test_invalid_cuts_are_refused(node, sides, why):
    with pytest.raises(ActionError, match=why):
        node.cluster.cut_network(*sides)


@pytest.mark.covers("S77")
@pytest.mark.parametrize("seed", range(20))
def test_no_schedule_of_cuts_loses_records_acknowledged_by_all(seed):
    """Every broker that thinks it leads is written to; after all cuts are healed, what was
    acknowledged with acks=all is there, and all replicas are alike.
    """
    draw = random.Random(seed)
    node = Replicas(3, configs={"replica.lag.time.max.ms": "2000"}, min_insync_replicas="2")
    acknowledged, unanswered = [], {}
    for count in range(120):
        dice = draw.random()
        if dice < 0.6:
            broker = draw.choice([1, 2, 3])
            value = f"v{count}"
            unanswered[value] = node.send(value, broker=broker, timeout_ms=5000)
        elif dice < 0.75:
            left = draw.choice([1, 2, 3])
            right = draw.choice([None, *({1, 2, 3} - {left})])
            node.cluster.cut_network(left, right, fence_after_ms=draw.choice([0, 3000]))
        elif dice < 0.9:
            node.cluster.heal_network()
        node.advance(draw.choice([0, 1, 500, 4000]))
        for value, answer in list(unanswered.items()):
            if not waiting(answer):
                del unanswered[value]
                if error_of(answer) == 0:
                    acknowledged.append(value)
    node.cluster.heal_network()
    node.advance(100_000)
    assert sorted(node.partition.isr) == [1, 2, 3]
    assert len(set(node.contents().values())) == 1
    assert set(acknowledged) <= set(node.read().split()), seed
    assert acknowledged


def test_requests_that_wait_at_an_isolated_leader_are_answered_if_it_leads_again(node):
    """Its epoch is another one, and its log is the same: what was sent is replicated after all."""
    node.cluster.cut_network(3, 1, fence_after_ms=600_000)
    node.hold(2)
    answer = node.send("b", timeout_ms=600_000, broker=3)
    node.cluster.move_leader("t", 0, 2)
    node.cluster.move_leader("t", 0, 3)
    node.settle()
    assert waiting(answer)
    node.cluster.heal_network()
    node.release(2)
    node.advance(2_000)
    assert error_of(answer) == 0
    assert node.contents() == {1: "a b", 2: "a b", 3: "a b"}
    assert node.leadership() == (3, 2, [3, 1, 2])


def test_requests_that_wait_at_an_isolated_follower_continue_to_wait_when_it_is_back():
    """A consumer that reads from a follower gets what is written once its broker hears again."""
    node = Replicas()
    node.sent("a")
    node.cluster.cut_network(3)
    answer = node.fetch(("t", 0, 1), broker=3, max_wait_ms=60_000)
    node.cluster.heal_network()
    node.advance(2_000)
    assert waiting(answer)
    node.sent("b")
    node.advance(1_000)
    assert values_of(done(answer).responses[0].partitions[0]) == [b"b"]


def test_requests_that_wait_at_an_isolated_follower_are_answered_if_the_topic_was_deleted():
    node = Replicas()
    node.cluster.cut_network(3)
    answer = node.fetch(("t", 0, 0), broker=3, max_wait_ms=60_000)
    node.cluster.delete_topic("t")
    assert waiting(answer)
    node.cluster.heal_network()
    error = done(answer).responses[0].partitions[0].error_code
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
