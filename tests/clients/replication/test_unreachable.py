"""Brokers that cannot be reached: killed ones refuse, silent ones keep clients waiting."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.librdkafka import (
    TIMEOUT_S,
    addresses,
    admin_client,
    open_consumer,
    produce,
    settings,
)
from tests.support.librdkafka import poll as poll_messages
from tests.support.librdkafka import values as values_of
from tests.support.python_clients import CLIENTS, PythonClient, Sent
from tests.support.replicated import TOPIC, Brokers
from tests.support.request_log import RequestLog


def one_record(brokers: Brokers) -> None:
    """On brokers 1, which leads, and 2."""
    brokers.create((1, 2))
    produce(brokers.bootstrap, TOPIC, ["a"])


def silence(brokers: Brokers) -> None:
    """Let broker 1 stand still, without being found out."""
    brokers.do(lambda cluster: cluster.pause_broker(1, fence_after_ms=3_600_000))


@pytest.mark.covers("S145", "S272", "S273")
def test_the_ends_of_a_silent_leader_are_not_to_be_had_in_time(brokers: Brokers) -> None:
    """Who waits longer than it is silent gets them."""
    one_record(brokers)
    partition = TopicPartition(TOPIC, 0)
    with open_consumer(brokers.bootstrap) as consumer, ThreadPoolExecutor() as pool:
        assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, 1)
        silence(brokers)
        with pytest.raises(KafkaException) as late:
            consumer.get_watermark_offsets(partition, 0.5)
        assert late.value.args[0].code() == KafkaError._TIMED_OUT
        asking = pool.submit(consumer.get_watermark_offsets, partition, TIMEOUT_S)
        assert not asking.done()
        brokers.kafka.broker(1).resume()
        assert asking.result() == (0, 1)


@pytest.mark.covers("S144")
def test_a_request_that_is_not_answered_is_given_up_and_put_to_the_next_leader(
    brokers: Brokers, log: RequestLog
) -> None:
    """The silent broker is fenced at last, and another one leads."""
    one_record(brokers)
    log.clear()
    silence(brokers)
    with open_consumer(
        brokers.bootstrap, socket_timeout_ms=500, topic_metadata_refresh_interval_ms=100
    ) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert poll_messages(consumer, 1, timeout_s=0.7) == []
        brokers.kafka.call(lambda c: c.controller.fence(c.brokers[1], "found out"))
        assert values_of(poll_messages(consumer, 1)) == ["a"]
    assert {each.node_id for each in log.of(ApiKey.FETCH)} == {2}


@pytest.mark.covers("S272", "S278")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.name)
def test_a_dead_broker_in_the_list_is_passed_over(brokers: Brokers, client: PythonClient) -> None:
    """Its port is closed: a client hears that at once and goes to the next address."""
    brokers.create((2, 3))
    servers = addresses(brokers.kafka, 1, 2)
    brokers.kafka.broker(1).stop(how="unclean")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(brokers.kafka.endpoint(1), timeout=TIMEOUT_S)
    assert client.write(servers, TOPIC, [Sent(b"a"), Sent(b"b")]) == [0, 1]
    assert [each.value for each in client.read(servers, TOPIC, 2)] == [b"a", b"b"]


@pytest.mark.covers("S287")
def test_a_mistyped_address_is_not_resolved_and_nothing_arrives(
    brokers: Brokers, log: RequestLog
) -> None:
    """The letter l for the digit 1."""
    errors: list[KafkaError] = []
    port = brokers.kafka.endpoint(1)[1]
    config = settings(f"l27.0.0.1:{port}", error_cb=errors.append)
    producer = Producer(config)
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=0.5)
    brokers.until(lambda: producer.poll(0.05) == 0 and errors != [])
    assert errors[0].code() in (KafkaError._RESOLVE, KafkaError._ALL_BROKERS_DOWN)
    assert log.of() == []


@pytest.mark.covers("S292")
def test_a_removed_broker_in_the_list_does_not_matter_unless_it_is_the_only_one(
    brokers: Brokers,
) -> None:
    brokers.create((2, 3))
    removed = addresses(brokers.kafka, 1)
    with open_consumer(brokers.bootstrap) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        produce(brokers.bootstrap, TOPIC, ["a"])
        assert values_of(poll_messages(consumer, 1)) == ["a"]
        brokers.do(lambda cluster: cluster.remove_broker(1))
        produce(brokers.bootstrap, TOPIC, ["b"])
        assert values_of(poll_messages(consumer, 1)) == ["b"]
    assert sorted(admin_client(brokers.bootstrap).list_topics(timeout=TIMEOUT_S).brokers) == [2, 3]
    with pytest.raises(KafkaException):
        admin_client(removed).list_topics(timeout=1)


@pytest.mark.covers("S293")
@pytest.mark.parametrize("ids", [[0, 1], [1, 2], [1, 2, 3], [1, 3, 4]], ids=str)
def test_a_cluster_has_the_ids_that_it_was_given(ids: Sequence[int]) -> None:
    """In the list of brokers, as controller, leaders, replicas and coordinator."""
    with Cluster(brokers=len(ids), node_ids=ids) as kafka:
        kafka.topic("t").create(6, 2)
        admin = admin_client(kafka.bootstrap_servers)
        told = admin.list_topics(timeout=TIMEOUT_S)
        assert sorted(told.brokers) == list(ids)
        assert told.controller_id in ids
        partitions = told.topics["t"].partitions.values()
        assert {each.leader for each in partitions} == set(ids)
        assert {node for each in partitions for node in each.replicas} == set(ids)
        produce(kafka.bootstrap_servers, "t", ["a"])
        with open_consumer(kafka.bootstrap_servers, group_id="g") as consumer:
            consumer.subscribe(["t"])
            assert values_of(poll_messages(consumer, 1)) == ["a"]
            consumer.commit(asynchronous=False)
        group = admin.describe_consumer_groups(["g"])["g"].result(TIMEOUT_S)
        assert group.coordinator.id in ids


@pytest.mark.covers("S281")
def test_clients_that_go_in_the_middle_of_a_long_poll_leave_nothing_behind(
    brokers: Brokers,
) -> None:
    """A thousand times. As in Kafka, a fetch is let go of when its time is up, not before."""
    brokers.create((1, 2))
    topic_id = brokers.do(lambda cluster: cluster.topics[TOPIC].topic_id)
    request = FetchRequest(
        max_wait_ms=600_000,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition(0)])],
    )
    idle = brokers.partition(lambda partition: len(partition._watchers))

    def waiting() -> int:
        return brokers.partition(lambda partition: len(partition._watchers)) - idle

    host, port = brokers.kafka.endpoint(1)
    for _ in range(20):
        with contextlib.ExitStack() as stack:
            for number in range(50):
                peer = Connection(host, port, f"short-lived-{number}", timeout_s=TIMEOUT_S)
                stack.callback(peer.close)
                peer.write(request, 17)
            brokers.until(lambda: waiting() == 50)
        brokers.kafka.clock.advance("601s")
        assert waiting() == 0
