"""Real clients while brokers stop, fail, restart, pause and join."""

from __future__ import annotations

import socket

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.client.connection import Connection
from mockbroker.core.errors import ActionError
from mockbroker.server.config import TopicSpec
from mockbroker_protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.support.librdkafka import addresses

TIMEOUT_S = 30.0
TOPIC = TopicSpec("orders", partitions=3, replication_factor=3)


@pytest.fixture
def kafka():
    with Cluster(brokers=3, topics=[TOPIC]) as cluster:
        yield cluster


def leaders(kafka: Cluster) -> list[int]:
    return kafka.call(
        lambda cluster: [part.leader_id for part in cluster.topics["orders"].partitions]
    )


def listed(kafka: Cluster) -> list[int]:
    """The brokers that clients are told of."""
    with Client(kafka.bootstrap_servers) as client:
        return sorted(broker.node_id for broker in client.metadata([]).brokers)


def producer(kafka: Cluster) -> Producer:
    return Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "topic.metadata.refresh.interval.ms": 200,
            "log_level": 0,
        }
    )


def send(client: Producer, first: int, count: int) -> None:
    """Produce numbered records and wait until all are acknowledged."""
    failed: list[object] = []

    def report(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    for number in range(first, first + count):
        client.produce("orders", str(number).encode(), partition=number % 3, on_delivery=report)
    assert client.flush(TIMEOUT_S) == 0
    assert failed == []


@pytest.mark.covers("S70")
@pytest.mark.parametrize("how", ["controlled", "unclean"])
def test_a_producer_goes_on_when_a_leader_stops(kafka: Cluster, how: str) -> None:
    """Every acknowledged record is there once, whichever broker went away in the middle."""
    client = producer(kafka)
    send(client, 0, 300)
    kafka.broker(leaders(kafka)[0]).stop(how=how)
    assert -1 not in leaders(kafka)
    send(client, 300, 300)
    values = sorted(int(record.value) for record in kafka.records("orders"))
    assert values == list(range(600))


@pytest.mark.covers("S72")
def test_a_broker_that_returns_follows_until_it_is_preferred_again(kafka: Cluster) -> None:
    """Leadership stays where it went; a preferred election brings it back."""
    first = leaders(kafka)[0]
    kafka.broker(first).stop(how="unclean")
    second = leaders(kafka)[0]
    assert second != first
    kafka.broker(first).start()
    send(producer(kafka), 0, 3)
    assert leaders(kafka)[0] == second
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    from confluent_kafka import ElectionType

    wanted = [TopicPartition("orders", 0)]
    admin.elect_leaders(ElectionType.PREFERRED, wanted).result(TIMEOUT_S)
    assert leaders(kafka)[0] == first


def test_a_consumer_reads_on_after_its_leader_died(kafka: Cluster) -> None:
    """No gap and no duplicate within the session."""
    client = producer(kafka)
    send(client, 0, 90)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "reconnect.backoff.ms": 10,
            "topic.metadata.refresh.interval.ms": 200,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("orders", index, 0) for index in range(3)])
    got: list[int] = []

    def read(total: int) -> None:
        for _ in range(600):
            got.extend(int(m.value()) for m in consumer.consume(50, 0.1) if not m.error())
            if len(got) >= total:
                return

    read(90)
    kafka.broker(leaders(kafka)[1]).stop(how="unclean")
    send(client, 90, 90)
    read(180)
    consumer.close()
    assert sorted(got) == list(range(180))


def test_a_paused_broker_holds_its_clients_up_until_it_is_resumed(kafka: Cluster) -> None:
    """A produce to it is acknowledged only after the resume."""
    client = producer(kafka)
    send(client, 0, 3)
    kafka.broker(leaders(kafka)[0]).pause()
    client.produce("orders", b"3", partition=0)
    assert client.flush(0.5) == 1
    kafka.broker(leaders(kafka)[0]).resume()
    assert client.flush(TIMEOUT_S) == 0


def test_a_broker_that_joins_is_in_the_metadata_and_serves(kafka: Cluster) -> None:
    """Clients bootstrap from the newcomer alone."""
    kafka.broker(7).add()
    admin = AdminClient({"bootstrap.servers": addresses(kafka, 7), "log_level": 0})
    assert sorted(admin.list_topics(timeout=TIMEOUT_S).brokers) == [1, 2, 3, 7]


def test_what_cannot_be_done_to_a_broker_is_refused(kafka: Cluster) -> None:
    """The message names the broker and says what it is."""
    with pytest.raises(ActionError, match="no broker 9"):
        kafka.broker(9).stop()
    with pytest.raises(ActionError, match="broker 1 is running, not stopped"):
        kafka.broker(1).start()
    kafka.broker(1).stop()
    with pytest.raises(ActionError, match="broker 1 is stopped already"):
        kafka.broker(1).stop()


def test_a_broker_outlives_its_registration(kafka: Cluster) -> None:
    """Its ports stay open, and are the same when it is started and registers again."""
    address = kafka.endpoint(2)
    connection = Connection(*kafka.endpoint(1), "tester", timeout_s=TIMEOUT_S)
    assert connection.send(UnregisterBrokerRequest(2)).error_code == 0
    connection.close()
    assert listed(kafka) == [1, 3]
    [lone] = [view for view in kafka.brokers() if not view.registered]
    assert (lone.node_id, lone.state, lone.fenced) == (2, "running", True)
    socket.create_connection(address, TIMEOUT_S).close()
    kafka.broker(2).pause()
    kafka.broker(2).resume()
    with pytest.raises(ActionError, match="there is a broker 2 already"):
        kafka.broker(2).add()
    kafka.broker(2).stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, TIMEOUT_S)
    kafka.broker(2).start()
    assert kafka.endpoint(2) == address
    assert listed(kafka) == [1, 2, 3]
    assert all(view.registered for view in kafka.brokers())
    send(producer(kafka), 0, 3)
