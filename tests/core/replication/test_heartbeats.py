"""Heartbeats of brokers, which exist while a rule may touch them."""

from __future__ import annotations

from mockbroker.core.replication.heartbeats import HeartbeatHop
from mockbroker_protocol import ErrorCode
from tests.support.hops import add_hop_rule, remove_rule
from tests.support.replicas import Replicas


def test_each_heartbeat_that_arrives_begins_the_session_anew() -> None:
    """Heartbeats that are under way for longer than their interval fence nobody meanwhile."""
    node = Replicas()
    add_hop_rule(node.cluster, {"delay": 3_000}, api="BrokerHeartbeat", from_broker=1)
    node.advance(60_000)
    assert (node.isr_changes(), node.elections()) == ([], [])
    assert node.leadership() == (1, 0, [1, 2, 3])


def test_a_broker_that_has_left_sends_no_more_heartbeats() -> None:
    node = Replicas(4, replicas=[1, 2, 3])
    rule = add_hop_rule(node.cluster, {"observe": {}}, api="BrokerHeartbeat", from_broker=4)
    node.advance(2_000)
    assert rule.hits == 2
    node.cluster.remove_broker(4)
    node.advance(60_000)
    assert rule.hits == 2


def test_without_a_rule_there_is_no_timer_of_a_heartbeat() -> None:
    node = Replicas()
    rule = add_hop_rule(node.cluster, {"observe": {}}, api="BrokerHeartbeat")
    node.advance(5_000)
    assert node.cluster.runtime.timers.deadline_ms() is not None
    remove_rule(node.cluster, rule)
    node.advance(10_000)
    assert node.cluster.runtime.timers.deadline_ms() is None


def test_heartbeats_have_the_intervals_of_the_configs() -> None:
    """Half a session without an answer is the other one."""
    configs = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "4000"}
    node = Replicas(configs=configs)
    answered = add_hop_rule(node.cluster, {"observe": {}}, api="BrokerHeartbeat", from_broker=2)
    lost = add_hop_rule(node.cluster, {"drop_reply": {}}, api="BrokerHeartbeat", from_broker=3)
    node.advance(3_999)
    assert (answered.hits, lost.hits) == (8, 2)
    node.advance(1)
    assert (answered.hits, lost.hits) == (9, 3)
    assert not any(broker.fenced for broker in node.cluster.brokers.values())


def test_without_an_interval_there_is_a_heartbeat_in_each_millisecond() -> None:
    node = Replicas(configs={"broker.heartbeat.interval.ms": "0"})
    rule = add_hop_rule(node.cluster, {"observe": {}}, api="BrokerHeartbeat", from_broker=2)
    node.advance(10)
    assert rule.hits == 11


def test_a_heartbeat_says_what_the_broker_is_and_its_answer_whether_it_is_fenced() -> None:
    node = Replicas()
    heartbeats, broker = node.cluster.controller.heartbeats, node.cluster.brokers[2]
    hop = HeartbeatHop(heartbeats, 2, 1)
    request = hop.request()
    assert (request.broker_id, request.broker_epoch) == (2, broker.epoch)
    assert request.current_metadata_offset == node.cluster.image.epoch
    assert not request.want_shut_down
    assert not hop.response(ErrorCode.NONE).is_fenced
    assert hop.response(ErrorCode.NONE).is_caught_up
    broker.fenced = True
    assert hop.response(ErrorCode.NONE).is_fenced
    refused = hop.response(ErrorCode.NOT_CONTROLLER)
    assert refused.error_code == ErrorCode.NOT_CONTROLLER
