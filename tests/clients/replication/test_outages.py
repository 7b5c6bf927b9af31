"""Clients and brokers that are cut off, die or come back: metadata, groups, what goes on."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.faulty import send, warm
from tests.support.librdkafka import (
    TIMEOUT_S,
    addresses,
    open_consumer,
    poll,
    produce,
    read_all,
    settings,
    values,
)
from tests.support.replicated import TOPIC, Brokers


def view(brokers: Brokers, node_id: int) -> tuple[list[int], int]:
    """The live brokers and the leader as this broker tells them; a client might ask another one."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    with Connection(*brokers.kafka.endpoint(node_id), "a look", timeout_s=TIMEOUT_S) as connection:
        told = connection.send(request, 12)
    return sorted(each.node_id for each in told.brokers), told.topics[0].partitions[0].leader_id


@pytest.mark.covers("S74")
def test_an_isolated_broker_answers_from_what_it_knew(brokers: Brokers) -> None:
    """Brokers 1 and 2 are gone for broker 3: it tells of them, acknowledges no acks=all, and takes
    records that are lost afterwards.

    The producers know their leader beforehand. A new one may ask any broker of the cluster.
    """
    brokers.create((3, 1, 2), min_insync_replicas="2")
    quick = Producer(settings(brokers.bootstrap, acks=1))
    careful = Producer(settings(brokers.bootstrap, acks="all", request_timeout_ms=300, retries=0))
    warm(quick, TOPIC)
    warm(careful, TOPIC)
    brokers.do(lambda cluster: cluster.cut_network(3))
    assert view(brokers, 3) == ([1, 2, 3], 3)
    assert send(quick, TOPIC, "lost").errors == []
    [refused] = send(careful, TOPIC, "no").errors
    assert refused.code() in (
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
    )
    assert view(brokers, 1) == ([1, 2], 1)
    produce(addresses(brokers.kafka, 1, 2), TOPIC, ["kept"], acks="all")
    brokers.do(lambda cluster: cluster.heal_network())
    brokers.settle()
    assert values(read_all(brokers.bootstrap, TOPIC, 3)) == ["warm", "warm", "kept"]


@pytest.mark.covers("S270", "S275")
def test_reads_go_on_as_long_as_one_member_of_the_isr_lives(brokers: Brokers) -> None:
    """Two of three brokers die one after the other, and come back."""
    brokers.create((1, 2, 3))
    produce(brokers.bootstrap, TOPIC, ["a"])
    for node_id in (1, 2):
        brokers.kafka.broker(node_id).stop(how="unclean")
        assert "a" in values(read_all(brokers.bootstrap, TOPIC, 1))
        produce(brokers.bootstrap, TOPIC, [f"without {node_id}"], acks="all")
    assert brokers.metadata().isrs == [3]
    for node_id in (2, 1):
        brokers.kafka.broker(node_id).start()
    brokers.settle()
    expected = ["a", "without 1", "without 2"]
    assert values(read_all(brokers.bootstrap, TOPIC, 3)) == expected


@pytest.mark.covers("S277")
@pytest.mark.mock_kafka(configs={"offsets.topic.num.partitions": "1"})
def test_offsets_survive_the_death_of_the_coordinator(kafka: Cluster, brokers: Brokers) -> None:
    """A group's member commits to one broker and goes on at the next."""
    brokers.create()
    produce(brokers.bootstrap, TOPIC, ["a", "b", "c"])

    def coordinator() -> int:
        topic = "__consumer_offsets"
        return kafka.call(lambda cluster: cluster.topics[topic].partitions[0].leader_id)

    with open_consumer(brokers.bootstrap, group_id="g", session_timeout_ms=6000) as consumer:
        consumer.subscribe([TOPIC])
        assert values(poll(consumer, 2)) in (["a", "b"], ["a", "b", "c"])
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
        former = coordinator()
        kafka.broker(former).stop(how="unclean")
        assert coordinator() != former
        (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], TIMEOUT_S)
        assert committed.offset == 1
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 2)], asynchronous=False)
    kafka.broker(former).start()
    with open_consumer(brokers.bootstrap, group_id="g") as consumer:
        (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], TIMEOUT_S)
        assert committed.offset == 2


@pytest.mark.covers("S48", "S309")
def test_a_partition_moves_to_another_broker_under_its_readers(brokers: Brokers) -> None:
    """From 1, 2 to 2, 3: a consumer that reads all the while misses nothing."""
    brokers.create((1, 2))
    produce(brokers.bootstrap, TOPIC, ["a"])
    with open_consumer(brokers.bootstrap) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert values(poll(consumer, 1)) == ["a"]
        from mockbroker.core.replication.reassignment import reassign

        brokers.do(
            lambda c: reassign(c.replication_control, TOPIC, 0, [2, 3], may_change_factor=True)
        )
        brokers.until(lambda: brokers.metadata().replicas == [2, 3])
        told = brokers.metadata()
        assert (told.leader, sorted(told.isrs)) == (2, [2, 3])
        produce(brokers.bootstrap, TOPIC, ["b"])
        assert values(poll(consumer, 1)) == ["b"]
