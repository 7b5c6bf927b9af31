"""DescribeProducers: a replica's states of idempotent producers."""

from __future__ import annotations

import pytest

from mockbroker.core.events import Event, ProducersExpired
from mockbroker.core.limits import RESPONSE_ELEMENTS_MAX
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from tests.support.ask import ask, nodes
from tests.support.requests import NOW_MS, Node, batch_of


@pytest.fixture
def node() -> Node:
    node = nodes(3)
    node.cluster.create_topic("t", assignments={0: [1, 2]})
    return node


def describe(node: Node, topic: str = "t", index: int = 0, broker: int = 1) -> PartitionResponse:
    request = DescribeProducersRequest([TopicRequest(topic, [index])])
    (answer,) = ask(node, ApiKey.DESCRIBE_PRODUCERS, request, broker=broker).topics
    (partition,) = answer.partitions
    assert (answer.name, partition.partition_index) == (topic, index)
    assert isinstance(partition, PartitionResponse)
    return partition


def test_a_producers_epoch_sequence_and_time(node):
    assert describe(node).active_producers == []
    batch = batch_of(b"a", b"b", producer_id=7, producer_epoch=2, base_sequence=0)
    node.produced(batch, transactional_id=None)
    (state,) = describe(node).active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 2, 1)
    assert (state.last_timestamp, state.coordinator_epoch) == (NOW_MS, -1)
    assert state.current_txn_start_offset == -1


def test_a_follower_tells_what_its_own_log_says(node):
    """One that is behind does not know yet."""
    batch = batch_of(b"a", producer_id=7, producer_epoch=2, base_sequence=0)
    node.cluster.lag_follower("t", 0, node=2)
    node.produced(batch, transactional_id=None, acks=1)
    assert describe(node, broker=2).active_producers == []
    node.cluster.lag_follower("t", 0, node=2, release=True)
    node.advance(1000)
    assert describe(node, broker=2) == describe(node, broker=1)


def test_an_expired_producer_is_told_no_more_by_leader_and_follower(node):
    """Also without an append since then, and by the journal's event once: of the leader."""
    configs = node.cluster.configs
    for name in ("producer.id.expiration.ms", "producer.id.expiration.check.interval.ms"):
        configs.dynamic_default[name] = "5000"
    configs.changed()
    expired: list[Event] = []
    node.cluster.runtime.on_event.append(expired.append)
    node.produced(batch_of(b"a", producer_id=7, producer_epoch=2, base_sequence=0))
    node.cluster.lag_follower("t", 0, node=2)
    for broker in (1, 2):
        assert [each.producer_id for each in describe(node, broker=broker).active_producers] == [7]
    node.now_ms += 5000
    for broker in (2, 1):
        assert describe(node, broker=broker).active_producers == []
    events = [each for each in expired if isinstance(each, ProducersExpired)]
    assert [(each.node_id, each.producer_ids) for each in events] == [(1, (7,))]


@pytest.mark.parametrize(
    ("topic", "index", "broker", "error", "has_message"),
    [
        ("t", 0, 3, ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        ("t", 9, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("none", 0, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("a/b", 0, 1, ErrorCode.INVALID_TOPIC_EXCEPTION, True),
    ],
)
def test_who_has_no_copy_tells_nothing(node, topic, index, broker, error, has_message):
    partition = describe(node, topic, index, broker)
    assert (partition.error_code, partition.active_producers) == (error, [])
    assert bool(partition.error_message) is has_message


def test_partitions_may_be_repeated_up_to_a_number_of_producers() -> None:
    """Kafka has no such limit; here the response of a topic is made in one piece."""
    node = Node(configs={RESPONSE_ELEMENTS_MAX: "2"})
    node.topic()
    batch = batch_of(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    node.produced(batch, transactional_id=None)
    allowed = DescribeProducersRequest([TopicRequest("t", [0, 0, 0])])
    (topic,) = ask(node, ApiKey.DESCRIBE_PRODUCERS, allowed).topics
    assert [len(each.active_producers) for each in topic.partitions] == [1, 1, 1]
    refused = DescribeProducersRequest([TopicRequest("t", [0, 0, 0, 0])])
    (topic,) = ask(node, ApiKey.DESCRIBE_PRODUCERS, refused).topics
    assert {each.error_code for each in topic.partitions} == {ErrorCode.INVALID_REQUEST}
    assert {each.error_message for each in topic.partitions} == {
        "Topic t: partitions with more than 2 producers (mockbroker.response.elements.max) "
        "are named again."
    }
    assert node.cluster.runtime.limits_exceeded == {RESPONSE_ELEMENTS_MAX: 1}
