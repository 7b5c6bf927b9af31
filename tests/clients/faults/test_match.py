"""Each condition of a match: it holds for one client's requests, and not for another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.ids import uuid_text
from tests.support.faulty import impatient_consumer, open_producer, send
from tests.support.librdkafka import TIMEOUT_S, owned, settings, until

CLIENT = "matched-client"
GROUP = "matched-group"
INSTANCE = "matched-instance"
TRANSACTION = "matched-transaction"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"matched": 2, "other": 1}) as running:
        yield running


def a_plain_producer(kafka: Cluster) -> None:
    send(open_producer(kafka, client_id=CLIENT, acks=1), "matched", "x", partition=1)


def a_transactional_producer(kafka: Cluster) -> None:
    producer = Producer(
        settings(kafka.bootstrap_servers, transactional_id=TRANSACTION, linger_ms=0)
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("matched", "x", partition=1)
    producer.commit_transaction(TIMEOUT_S)


def a_consumer(kafka: Cluster) -> None:
    with impatient_consumer(kafka, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition("matched", 1, 0)])
        consumer.poll(0)
        kafka.faults.rule("any-fetch").wait()


def a_member(kafka: Cluster) -> None:
    consumer = Consumer(
        settings(
            kafka.bootstrap_servers,
            group_id=GROUP,
            group_instance_id=INSTANCE,
            heartbeat_interval_ms=50,
        )
    )
    consumer.subscribe(["matched"])
    until(lambda: owned(consumer) == [0, 1], consumer)
    kafka.faults.rule("any-heartbeat").wait()
    consumer.close()


@pytest.fixture
def watched(kafka: Cluster) -> Cluster:
    """What some of the clients wait for."""
    for name, api in (("any-fetch", "Fetch"), ("any-heartbeat", "Heartbeat")):
        kafka.faults.add(name=name, match={"api": api}, do={"observe": {}})
    return kafka


Act = Callable[[Cluster], None]
CASES: list[tuple[str, Act, str, object, object]] = [
    # field, who, API, what holds, what does not
    ("api", a_plain_producer, "", ["Produce", 1], "EndTxn"),
    ("api_version", a_plain_producer, "Produce", "9+", "-2"),
    ("broker", a_plain_producer, "Produce", 1, [2, 3]),
    ("listener", a_plain_producer, "Produce", "PLAIN*", "SSL"),
    ("topic", a_plain_producer, "Produce", "match*", "other"),
    ("topic", a_plain_producer, "Produce", "/^ma.+ed$/", "/^other/"),
    ("topic", a_consumer, "Fetch", ["other", "matched"], "mat"),
    ("partition", a_plain_producer, "Produce", 1, 0),
    ("client_id", a_plain_producer, "Produce", "matched-*", ["a", "b*"]),
    ("client_software", a_plain_producer, "Produce", "confluent-kafka-*", "apache-kafka-java"),
    ("principal", a_plain_producer, "Produce", "User:ANONYMOUS", "User:alice"),
    ("source", a_plain_producer, "Produce", "127.0.0.0/8", ["10.0.0.0/8", "192.168.*"]),
    ("acks", a_plain_producer, "Produce", 1, "all"),
    ("transactional", a_plain_producer, "Produce", False, True),
    ("where", a_plain_producer, "Produce", {"timeout_ms": {"min": 1}}, {"acks": [0, -1]}),
    ("transactional_id", a_transactional_producer, "EndTxn", "*transaction", "other"),
    ("transactional", a_transactional_producer, "Produce", True, False),
    ("isolation_level", a_consumer, "Fetch", "read_committed", 0),
    ("group", a_member, "Heartbeat", GROUP, "other-*"),
    ("group", a_member, "FindCoordinator", GROUP, "other-*"),
    ("member", a_member, "Heartbeat", "matched-instance-*", "nobody"),
    ("instance_id", a_member, "JoinGroup", INSTANCE, "other"),
]


@pytest.mark.fault(
    "api",
    "api_version",
    "broker",
    "listener",
    "topic",
    "partition",
    "group",
    "member",
    "instance_id",
    "transactional_id",
    "client_id",
    "client_software",
    "principal",
    "source",
    "acks",
    "isolation_level",
    "transactional",
    "where",
)
@pytest.mark.parametrize("act", [a_plain_producer, a_transactional_producer, a_consumer, a_member])
def test_a_condition_tells_requests_apart(watched: Cluster, act: Act) -> None:
    """All conditions for one kind of client at once, each beside one that does not hold."""
    rules: dict[str, tuple[Any, Any]] = {}
    for number, (field, who, api, right, wrong) in enumerate(CASES):
        if who is not act:
            continue
        match = {"api": api} if api else {}
        rules[f"{field}-{number}"] = tuple(
            watched.faults.add(match={**match, field: value}, do={"observe": {}})
            for value in (right, wrong)
        )
    act(watched)
    found = {name: (right.hits > 0, wrong.hits) for name, (right, wrong) in rules.items()}
    assert found == dict.fromkeys(rules, (True, 0))
    for name, (_, wrong) in rules.items():
        field = name.partition("-")[0]
        assert field in str(wrong.why())


@pytest.mark.fault("topic_id", "producer_id", "connection")
def test_by_what_the_cluster_gave_out(kafka: Cluster) -> None:
    """Topic ids, producer ids, connections: by their number, or as the n-th that matched."""
    topic_id = kafka.call(lambda c: uuid_text(c.topics["other"].topic_id))
    by_id = kafka.faults.add(match={"api": "Produce", "topic_id": topic_id}, do={"observe": {}})
    second = kafka.faults.add(
        match={"api": "Produce", "topic": "other", "connection": {"nth": 2}}, do={"observe": {}}
    )
    producer = open_producer(kafka, enable_idempotence=True)
    send(producer, "other", "x")
    assert by_id.hits == 1
    producer_id = kafka.call(
        lambda c: next(iter(c.topics["other"].partitions[0].log.producers.entries))
    )
    by_producer = kafka.faults.add(
        match={"api": "Produce", "producer_id": producer_id}, do={"observe": {}}
    )
    connection = kafka.call(lambda c: c.faults.rule(by_id.name).last.connection)
    by_connection = kafka.faults.add(
        match={"api": "Produce", "connection": connection}, do={"observe": {}}
    )
    send(producer, "other", "y")
    assert (by_producer.hits, by_connection.hits, second.hits) == (1, 1, 0)
    send(open_producer(kafka), "other", "z")
    assert (by_producer.hits, by_connection.hits, second.hits) == (1, 1, 1)
