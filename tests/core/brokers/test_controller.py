"""Brokers that stop, fail, pause, restart, join and leave; and the active controller."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.events import BrokerChanged, ControllerChanged, NetworkChanged
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.describe_cluster import DescribeClusterRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.support.ask import ask
from tests.support.replicas import Replicas, error_of


@pytest.fixture
def node() -> Replicas:
    """Broker 3 leads t-0 of brokers 3, 2, 1."""
    return Replicas(replicas=[3, 2, 1])


def life(node: Replicas, node_id: int) -> list[tuple[int, str]]:
    """What happened to a broker: (ms since the first of it, change)."""
    told = [e for e in node.events if isinstance(e, BrokerChanged) and e.node_id == node_id]
    return [(event.at_ms - told[0].at_ms, event.change) for event in told]


def seen(node: Replicas, broker: int = 1) -> tuple[list[int], int, int]:
    """(brokers, controller, error of t-0) as Metadata tells them."""
    request = MetadataRequest([MetadataRequestTopic(name="t")])
    response = ask(node, ApiKey.METADATA, request, 12, broker=broker)
    ids = [each.node_id for each in response.brokers]
    return ids, response.controller_id, response.topics[0].partitions[0].error_code


# -- stopping and starting -------------------------------------------------------------------------


@pytest.mark.covers("S60")
def test_each_step_of_a_shutdown_is_an_event(node):
    """It says so, its leaders move, its process ends, and only then it is fenced."""
    states = []
    node.cluster.on_broker_state.append(
        lambda broker: states.append((broker.state, node.partition.leader_id))
    )
    node.cluster.stop_broker(3)
    assert life(node, 3) == [(0, "shutting down"), (0, "stopped"), (0, "fenced")]
    assert states == [("stopped", 2)]
    assert seen(node)[0] == [1, 2]


def test_a_killed_broker_is_fenced_at_once_or_when_its_session_expires(node):
    """Until then clients are told of it, and of it as the leader."""
    node.cluster.stop_broker(3, "unclean", fence_after_ms=9000)
    node.advance(8999)
    assert (seen(node)[0], node.leadership()) == ([1, 2, 3], (3, 0, [3, 2, 1]))
    node.advance(1)
    assert (seen(node)[0], node.leadership()) == ([1, 2], (2, 1, [2, 1]))
    assert life(node, 3) == [(0, "stopped"), (9000, "fenced")]


def test_a_broker_that_restarts_within_its_session_registers_again(node):
    """As a new process it has another epoch, and the old one is fenced first."""
    epoch = node.cluster.brokers[3].epoch
    node.cluster.stop_broker(3, "unclean", fence_after_ms=9000)
    node.advance(1000)
    node.cluster.start_broker(3)
    node.advance(20_000)
    assert [change for _, change in life(node, 3)] == ["stopped", "fenced", "running", "unfenced"]
    assert node.cluster.brokers[3].epoch > epoch
    assert node.leadership() == (2, 1, [1, 2, 3])


def test_a_restart_loses_the_memory_of_the_process(node):
    cluster = node.cluster
    first = cluster.runtime.ids.producer_id(3)
    sessions = cluster.brokers[3].fetch_sessions
    cluster.stop_broker(3)
    cluster.start_broker(3)
    assert cluster.brokers[3].fetch_sessions is not sessions
    assert cluster.runtime.ids.producer_id(3) == first + 1000, "from another block"


@pytest.mark.covers("S78")
def test_a_paused_broker_is_fenced_when_its_session_expires_and_unfenced_when_it_is_resumed(node):
    node.sent("a")
    node.cluster.pause_broker(3)
    node.advance(8999)
    assert node.leadership() == (3, 0, [3, 2, 1])
    node.advance(1)
    assert node.leadership() == (2, 1, [2, 1])
    node.sent("b")
    node.cluster.resume_broker(3)
    node.settle()
    assert node.contents() == {3: "a b", 2: "a b", 1: "a b"}
    assert life(node, 3) == [(0, "paused"), (9000, "fenced"), (9000, "running"), (9000, "unfenced")]


def test_a_short_pause_has_no_consequences(node):
    node.cluster.pause_broker(1)
    node.advance(5000)
    node.cluster.resume_broker(1)
    node.advance(20_000)
    assert node.leadership() == (3, 0, [3, 2, 1])


def test_a_paused_follower_delays_acks_all(node):
    node.cluster.pause_broker(1)
    answer = node.send("a", timeout_ms=60_000)
    node.advance(8999)
    assert not answer.done
    node.advance(1)
    assert answer.done
    assert node.partition.isr == [3, 2]


def test_a_paused_broker_can_be_killed(node):
    node.cluster.pause_broker(3, fence_after_ms=60_000)
    node.cluster.stop_broker(3, "unclean")
    assert node.leadership() == (2, 1, [2, 1])
    node.advance(100_000)
    assert [change for _, change in life(node, 3)].count("fenced") == 1


# -- joining and leaving ---------------------------------------------------------------------------


def test_a_new_broker_gets_new_partitions(node):
    node.cluster.add_broker(7, rack="r7")
    broker = node.cluster.brokers[7]
    broker.set_endpoint("PLAINTEXT", "127.0.0.1", 9007)
    assert (broker.rack, broker.state, broker.fenced) == ("r7", "running", False)
    assert seen(node)[0] == [1, 2, 3, 7]
    node.cluster.create_topic("new", 1, 4)
    assert 7 in node.cluster.topics["new"].partitions[0].isr


def test_a_removed_broker_remains_in_the_replica_lists(node):
    states: list[str] = []
    node.cluster.on_broker_state.append(lambda broker: states.append(broker.state))
    node.cluster.remove_broker(3)
    assert states == ["stopped", "removed"]
    assert 3 not in node.cluster.brokers
    assert node.leadership() == (2, 1, [2, 1])
    assert node.partition.replicas == [3, 2, 1]
    assert node.sent("a").error_code == 0
    request = DescribeClusterRequest(include_fenced_brokers=True)
    brokers = ask(node, ApiKey.DESCRIBE_CLUSTER, request).brokers
    assert [broker.broker_id for broker in brokers] == [1, 2]


def test_a_broker_that_takes_the_place_of_a_removed_one_has_links_that_are_up(node):
    cluster = node.cluster
    told: list[object] = []
    cluster.cut_network(3, to=1)
    cluster.delay_network(2, to=3, by_ms=300)
    cluster.delay_network(1, to=2, by_ms=20)
    cluster.runtime.on_event.append(told.append)
    cluster.remove_broker(3)
    healed = [each for each in told if isinstance(each, NetworkChanged)]
    assert [(e.change, e.from_nodes, e.to_nodes) for e in healed] == [("healed", (3,), (1, 2))]
    cluster.add_broker(3)
    network = cluster.replication.network
    assert not network.cut_links
    assert (network.delay_ms(2, 3), network.delay_ms(1, 2)) == (0, 20)
    told.clear()
    cluster.remove_broker(3)  # there is nothing to heal
    assert not [each for each in told if isinstance(each, NetworkChanged)]


def test_the_next_controller_needs_no_link_to_a_removed_one(node):
    cluster = node.cluster
    controller = cluster.controller_id
    rest = sorted(set(cluster.processes) - {controller})
    cluster.pause_broker(rest[0])
    cluster.cut_network(controller, to=rest[1], fence_after_ms=35_000)
    cluster.remove_broker(controller)
    assert cluster.controller_id == rest[1]
    assert cluster.brokers[rest[1]].has_newest_image


def test_an_unregistered_broker_leaves_the_metadata_and_every_isr(node):
    node.cluster.stop_broker(3)
    answer = ask(node, ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(3))
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, "")
    assert list(node.cluster.brokers) == [1, 2]
    again = ask(node, ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(3))
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert "3" in again.error_message


def unregister(node: Replicas, node_id: int, broker: int = 1) -> None:
    """Over the wire, as any live broker is asked for it."""
    request = UnregisterBrokerRequest(node_id)
    assert ask(node, ApiKey.UNREGISTER_BROKER, request, broker=broker).error_code == 0


@pytest.mark.parametrize("how", ["controlled", "unclean", None])
def test_an_unregistered_broker_registers_when_it_is_started(node, how):
    """Kafka 4.3 does the same for one that was stopped, that was killed, and that ran on."""
    cluster, process = node.cluster, node.cluster.brokers[3]
    node.sent("a")
    if how is not None:
        cluster.stop_broker(3, how)
    unregister(node, 3)
    assert (list(cluster.brokers), seen(node)[0]) == ([1, 2], [1, 2])
    assert node.leadership()[2] == [2, 1]
    node.sent("b")
    if how is None:
        cluster.stop_broker(3)
    epoch = process.epoch
    cluster.start_broker(3)
    node.settle()
    assert cluster.brokers[3] is process
    assert (process.state, process.fenced, process.epoch > epoch) == ("running", False, True)
    assert (list(cluster.brokers), seen(node)[0]) == ([1, 2, 3], [1, 2, 3])
    assert (sorted(node.partition.isr), node.content(3)) == ([1, 2, 3], "a b")
    changes = [change for _, change in life(node, 3)]
    assert changes[-2:] == ["running", "unfenced"]
    assert changes.count("unregistered") == 1


def test_an_unregistered_broker_continues_as_a_follower(node):
    """It serves what a follower does, is in no ISR, and tells of the cluster what others tell."""
    cluster = node.cluster
    node.sent("a")
    unregister(node, 3)
    assert node.leadership() == (2, 1, [2, 1])
    assert seen(node, 1) == seen(node, 3) == ([1, 2], 1, 0)
    node.sent("b")
    assert (node.content(3), node.read(broker=3), node.partition.isr) == ("a b", "a b", [2, 1])
    assert error_of(node.send("c", broker=3)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    own = DescribeConfigsRequest([DescribeConfigsResource(4, "3"), DescribeConfigsResource(8, "3")])
    described = ask(node, ApiKey.DESCRIBE_CONFIGS, own, broker=3).results
    assert [(each.error_code, bool(each.configs)) for each in described] == [(0, True)] * 2
    again = ask(node, ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(3), broker=3)
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    node.advance(100_000)
    assert 3 not in cluster.brokers


@pytest.mark.parametrize("stays", [True, False])
def test_a_resumed_broker_without_a_registration_is_not_unfenced(node, stays):
    cluster = node.cluster
    if stays:
        unregister(node, 3)
        cluster.pause_broker(3)
    else:
        cluster.pause_broker(3)
        unregister(node, 3)
    node.advance(60_000)
    cluster.resume_broker(3)
    node.settle()
    process = cluster.processes.get(3)
    assert (process.state, process.fenced, list(cluster.brokers)) == ("running", True, [1, 2])
    cluster.pause_broker(3, fence_after_ms=5000)
    cluster.stop_broker(3, "unclean", fence_after_ms=5000)
    cluster.start_broker(3)
    node.advance(60_000)
    assert not process.fenced
    assert seen(node)[0] == [1, 2, 3]


def test_the_only_replica_leads_again_after_it_was_unregistered():
    """It is the last known leader, which no other end of its process makes it lose either."""
    node = Replicas(2, replicas=[2])
    node.sent("a")
    unregister(node, 2)
    assert (node.partition.leader_id, node.partition.elr) == (-1, (2,))
    node.cluster.stop_broker(2)
    node.cluster.start_broker(2)
    assert (node.partition.leader_id, node.partition.elr, node.read()) == (2, (), "a")


def test_an_unregistered_broker_is_an_eligible_leader_until_it_is_started():
    """As on Kafka 4.3: only then its former end counts as unclean."""
    node = Replicas(min_insync_replicas="3")
    node.cluster.stop_broker(3)
    assert node.partition.elr == (3,)
    unregister(node, 3)
    assert node.partition.elr == (3,)
    node.cluster.start_broker(3)
    assert (node.partition.elr, node.partition.isr) == ((), [1, 2])
    node.settle()
    assert node.partition.isr == [1, 2, 3]


def test_an_isolated_broker_can_be_unregistered(node):
    cluster = node.cluster
    cluster.cut_network(3)
    unregister(node, 3)
    cluster.heal_network()
    node.settle()
    assert (list(cluster.brokers), cluster.processes.get(3).state) == ([1, 2], "running")
    node.sent("a")
    assert (node.content(3), node.partition.isr) == ("a", [2, 1])


def test_an_unregistered_broker_is_not_added_again_but_can_be_removed(node):
    cluster = node.cluster
    unregister(node, 3)
    with pytest.raises(ActionError, match="there is a broker 3 already; it is not registered"):
        cluster.add_broker(3)
    cluster.fail_log_dir(3)
    assert cluster.processes.get(3).state == "stopped"
    cluster.remove_broker(3)
    assert cluster.processes.get(3) is None
    with pytest.raises(ActionError, match="there is no broker 3; there are: 1, 2"):
        cluster.start_broker(3)
    cluster.add_broker(3)
    assert list(cluster.brokers) == [1, 2, 3]


def test_a_rack_can_be_changed(node):
    epoch = node.cluster.image.epoch
    node.cluster.set_rack(2, "elsewhere")
    assert node.cluster.brokers[2].rack == "elsewhere"
    assert node.cluster.image.epoch > epoch


# -- the controller --------------------------------------------------------------------------------


@pytest.mark.covers("S62")
def test_when_the_controllers_broker_stops_the_next_one_takes_over(node):
    assert (node.cluster.controller_id, node.cluster.controller.epoch) == (1, 1)
    node.cluster.stop_broker(1)
    assert seen(node, 2)[1] == 2
    assert node.cluster.controller.epoch == 2
    node.cluster.start_broker(1)
    assert seen(node)[1] == 2
    told = [(e.node_id, e.epoch) for e in node.events if isinstance(e, ControllerChanged)]
    assert told == [(2, 2)]


@pytest.mark.parametrize("how", ["paused", "killed"])
def test_when_the_controllers_broker_is_paused_the_next_one_takes_over_at_once(node, how):
    if how == "paused":
        node.cluster.pause_broker(1, fence_after_ms=9000)
    else:
        node.cluster.stop_broker(1, "unclean", fence_after_ms=9000)
    assert seen(node, 2)[1] == 2
    node.cluster.pause_broker(2, fence_after_ms=9000)
    assert node.cluster.controller_id == 3
    node.cluster.pause_broker(3, fence_after_ms=9000)
    assert node.cluster.controller_id == 3
    node.cluster.resume_broker(2)
    assert node.cluster.controller_id == 2


def test_a_paused_broker_takes_over_only_if_no_other_runs(node):
    node.cluster.pause_broker(2, fence_after_ms=9000)
    node.cluster.stop_broker(1)
    assert node.cluster.controller_id == 3
    node.cluster.stop_broker(3)
    assert node.cluster.controller_id == 2


def test_a_paused_controller_answers_once_it_is_resumed(node):
    """No other live broker can take over."""
    cluster = node.cluster
    cluster.stop_broker(2)
    unregister(node, 3)
    cluster.pause_broker(1, fence_after_ms=3_600_000)
    load_all()
    request = CreateTopicsRequest([CreatableTopic("new", 1, 1)])
    answer = APIS[ApiKey.CREATE_TOPICS].handle(
        node.ctx(5, key=ApiKey.CREATE_TOPICS, broker=3), request
    )
    node.advance(5000)
    assert not answer.done
    cluster.resume_broker(1)
    node.advance(0)
    assert answer.done
    assert answer.response.topics[0].error_code == ErrorCode.NONE


def test_followers_of_a_paused_leader_do_not_get_its_high_watermark(node):
    """Another follower leaves the ISR meanwhile."""
    node.cluster.pause_broker(1, fence_after_ms=3_600_000)
    node.send("a", acks=1)
    node.settle()
    node.cluster.pause_broker(3, fence_after_ms=3_600_000)
    node.cluster.stop_broker(1, "unclean")
    node.advance(1000)
    assert node.partition.isr == [3, 2]
    assert node.read(broker=2) == ""
    node.cluster.resume_broker(3)
    node.settle()
    assert node.read(broker=2) == "a"


def test_without_a_live_broker_there_is_no_controller_until_one_starts(node):
    for node_id in (1, 2, 3):
        node.cluster.stop_broker(node_id, "unclean")
    assert node.cluster.controller_id == -1
    node.cluster.start_broker(2)
    assert node.cluster.controller_id == 2
    node.cluster.start_broker(1)
    assert node.cluster.controller_id == 2


# -- elections and what clients are told -----------------------------------------------------------


@pytest.mark.covers("S63")
def test_every_broker_answers_with_the_same_replicas(node):
    node.cluster.stop_broker(3)
    request = MetadataRequest([MetadataRequestTopic(name="t")])
    told = []
    for broker in (1, 2):
        response = ask(node, ApiKey.METADATA, request, 12, broker=broker)
        (partition,) = response.topics[0].partitions
        told.append((partition.replica_nodes, partition.isr_nodes, partition.offline_replicas))
    assert told == [([3, 2, 1], [2, 1], [3])] * 2


def test_a_leaderless_partition_is_an_error_in_metadata(node):
    node.cluster.shrink_isr("t", 0, nodes=[1, 2])
    node.cluster.stop_broker(3)
    assert seen(node)[2] == ErrorCode.LEADER_NOT_AVAILABLE


def test_a_broker_with_thousands_of_leaders_comes_and_goes():
    """One broker of three stops: every third leader moves, and nothing is quadratic."""
    node = Replicas()
    node.cluster.create_topic("many", 3000, 3)
    node.cluster.stop_broker(2)
    partitions = node.cluster.topics["many"].partitions
    assert all(p.leader_id in (1, 3) and 2 not in p.isr for p in partitions)
    node.cluster.start_broker(2)
    node.settle()
    assert all(2 in p.isr and not p.own_replicas for p in partitions)
