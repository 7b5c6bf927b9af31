"""Brokers that say of themselves, or of the cluster, what is not so."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import TopicMetadata

from mockbroker import Cluster
from tests.support.faulty import open_producer, send, stored, warm
from tests.support.librdkafka import TIMEOUT_S, admin_client, settings
from tests.support.waiting import wait_until


def described(kafka: Cluster, topic: str) -> TopicMetadata:
    """What Metadata tells a client that asks for the first time."""
    return admin_client(kafka.bootstrap_servers).list_topics(topic, TIMEOUT_S).topics[topic]


@pytest.mark.fault("falsify_api_versions")
def test_an_api_that_is_hidden_is_not_used(kafka: Cluster) -> None:
    """An idempotent producer cannot be without InitProducerId."""
    kafka.faults.add(do={"falsify_api_versions": {"hide": ["InitProducerId"]}})
    asked = kafka.faults.add(match={"api": "InitProducerId"}, do={"observe": {}})
    producer = open_producer(kafka, enable_idempotence=True)
    with pytest.raises(KafkaException) as raised:
        wait_until(lambda: producer.poll(0.05) is None, what="the fatal error")
    assert raised.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE
    assert asked.hits == 0


@pytest.mark.fault("falsify_api_versions", "api_version")
@pytest.mark.parametrize(
    ("effect", "highest"), [({"as": "2.8"}, 9), ({"max": {"Produce": 7}}, 7)], ids=["as", "max"]
)
def test_a_client_speaks_as_the_broker_seems_to_like_it(
    kafka: Cluster, topic: str, effect: dict[str, object], highest: int
) -> None:
    kafka.faults.add(match={"api": "ApiVersions"}, do={"falsify_api_versions": effect})
    produced = {"api": "Produce", "topic": topic}
    new = kafka.faults.add(match={**produced, "api_version": f"{highest + 1}+"}, do={"observe": {}})
    old = kafka.faults.add(match={**produced, "api_version": highest}, do={"observe": {}})
    assert send(open_producer(kafka), topic, "x").errors == []
    assert (old.hits, new.hits) == (1, 0)


@pytest.mark.fault("falsify_metadata")
def test_a_wrong_leader_is_believed_until_it_says_no(kafka: Cluster, topic: str) -> None:
    """The true leader is broker 1. A producer with broker 2 learns there that it does not lead."""
    effect = kafka.faults.add(
        match={"api": "Metadata", "topic": topic, "partition": 0},
        do={"falsify_metadata": {"leader": 2}},
    )
    found = described(kafka, topic)
    assert found.partitions[0].leader == 2
    assert found.partitions[1].leader == 1
    kafka.faults.add(match={"api": "Produce", "topic": topic, "broker": 2}, do={"hold": {}})
    producer = open_producer(kafka)
    producer.produce(topic, "x", partition=0)
    held = kafka.faults.wait_held()
    assert stored(kafka, topic) == []
    effect.remove()
    held.release()
    assert producer.flush(TIMEOUT_S) == 0
    assert stored(kafka, topic) == ["x"]


@pytest.mark.fault("falsify_metadata")
def test_a_broker_is_hidden_and_another_one_is_elsewhere(kafka: Cluster, topic: str) -> None:
    kafka.faults.add(
        match={"api": "Metadata"},
        do={
            "falsify_metadata": {
                "hide_broker": 3,
                "address": {"node": 2, "host": "nowhere.invalid", "port": 1},
                "controller": 2,
            }
        },
    )
    found = admin_client(kafka.bootstrap_servers).list_topics(topic, TIMEOUT_S)
    assert {node: broker.host for node, broker in found.brokers.items()} == {
        1: "127.0.0.1",
        2: "nowhere.invalid",
    }
    assert found.controller_id == 2


@pytest.mark.fault("falsify_metadata")
def test_no_leader_has_the_listener(kafka: Cluster, topic: str) -> None:
    kafka.faults.add(
        match={"api": "Metadata", "topic": topic},
        do={"falsify_metadata": {"error": "LISTENER_NOT_FOUND"}},
    )
    partition = described(kafka, topic).partitions[0]
    assert partition.error is not None
    assert partition.error.code() == KafkaError.LISTENER_NOT_FOUND
    assert partition.leader == -1


@pytest.mark.fault("falsify_metadata")
def test_a_stale_leader_epoch_is_not_taken_for_news(kafka: Cluster, topic: str) -> None:
    """librdkafka keeps to the leader of the higher epoch that it knows."""
    kafka.act("move_leader", topic=topic, partition=0, node=2)
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=0))
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Metadata", "topic": topic},
        do={"falsify_metadata": {"leader": 1, "stale_epochs": 1}},
    )
    fooled = kafka.faults.add(
        match={"api": "Produce", "topic": topic, "broker": 1}, do={"observe": {}}
    )
    producer.list_topics(topic, TIMEOUT_S)
    assert send(producer, topic, "x").errors == []
    assert fooled.hits == 0
