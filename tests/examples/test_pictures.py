"""The pictures of docs/examples/pictures are those of a live cluster."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from tests.house.doc_blocks import ROOT

FOLDER = ROOT / "docs" / "examples" / "pictures"

pytestmark = pytest.mark.covers("S350")


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", FOLDER / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pictures = load()


def of_page(heading: str) -> str:
    """The picture below a heading of the page."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {heading}\n.*?^```text\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found.group(1)


def lines(picture: str) -> list[str]:
    return [line.rstrip() for line in picture.splitlines()]


def assert_drawn(picture: str, heading: str) -> None:
    assert lines(picture) == lines(of_page(heading)), f"\n{picture}"


def send(kafka: Cluster, topic: str, count: int, partition: int = 0, **settings: str) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    if settings.get("transactional.id"):
        producer.init_transactions(30)
        producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, f"{topic[:-1]}{number}", partition=partition)
    if settings.get("acks") != "all":
        assert producer.flush(30) == 0
    return producer


def commit(kafka: Cluster, topic: str, offset: int, group: str = "kitchen") -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


@pytest.mark.mock_kafka(brokers=1, topics={"orders": 1})
def test_offsets_of_a_log(mock_kafka: Cluster) -> None:
    """A crash at position 6 with offset 1 committed: 1 to 5 come again."""
    send(mock_kafka, "orders", 10)
    settings = {"bootstrap.servers": mock_kafka.bootstrap_servers, "group.id": "kitchen"}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert len(consumer.consume(6, 30)) == 6
    [position] = consumer.position([TopicPartition("orders", 0)])
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    picture = pictures.log(mock_kafka, "orders", position=position.offset, group="kitchen")
    consumer.close()
    assert_drawn(picture, "The offsets of a log")


@pytest.mark.mock_kafka(brokers=1, topics={"orders": 1})
def test_lag_behind_an_open_transaction(mock_kafka: Cluster) -> None:
    send(mock_kafka, "orders", 5)
    producer = send(mock_kafka, "orders", 3, **{"transactional.id": "till"})
    commit(mock_kafka, "orders", 2)
    picture = pictures.log(mock_kafka, "orders", group="kitchen")
    producer.abort_transaction(30)
    assert_drawn(picture, "Lag behind an open transaction")


def test_lag_behind_slow_followers() -> None:
    with Cluster(brokers=3) as kafka:
        kafka.topic("orders").create(assignments={0: [1, 2, 3]})
        send(kafka, "orders", 115)
        for node in (2, 3):
            kafka.partition("orders", 0).lag_follower(node)
        send(kafka, "orders", 5, acks="1")
        commit(kafka, "orders", 112)
        picture = pictures.log(kafka, "orders", first=110, group="kitchen")
    assert_drawn(picture, "Lag behind slow followers")


@pytest.mark.mock_kafka(brokers=1, topics={"orders": 1})
def test_lag_behind_a_log_that_was_cut(mock_kafka: Cluster) -> None:
    send(mock_kafka, "orders", 10)
    commit(mock_kafka, "orders", 2)
    mock_kafka.partition("orders", 0).delete_records(6)
    assert_drawn(
        pictures.log(mock_kafka, "orders", group="kitchen"), "Lag behind a log that was cut"
    )


@pytest.mark.mock_kafka(brokers=1, topics={"orders": 1, "bills": 1, "snapshots": 1})
def test_read_process_write(mock_kafka: Cluster) -> None:
    servers = {"bootstrap.servers": mock_kafka.bootstrap_servers}
    send(mock_kafka, "orders", 3)
    producer = Producer({**servers, "transactional.id": "billing", "client.id": "billing"})
    producer.init_transactions(30)
    consumer = Consumer({**servers, "group.id": "billing"})
    for number, counts in ((0, True), (1, False), (1, True)):
        producer.begin_transaction()
        producer.produce("bills", f"bill{number}")
        producer.produce("snapshots", f"next={number + 1}")
        assert producer.flush(30) == 0
        if counts:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    consumer.close()
    mock_kafka.journal.wait(6, kind="marker")
    assert_drawn(
        pictures.transactions(mock_kafka, "orders", "bills", "snapshots"), "Read, process, write"
    )


@pytest.mark.mock_kafka(brokers=2)
def test_groups_of_a_topic(mock_kafka: Cluster) -> None:
    mock_kafka.topic("orders").create(assignments={0: [1], 1: [2], 2: [1], 3: [2]})
    servers = {"bootstrap.servers": mock_kafka.bootstrap_servers}
    members = {"a": 2, "b": 5}
    consumers = [
        Consumer({**servers, "group.id": group, "heartbeat.interval.ms": 100})
        for group, count in members.items()
        for _ in range(count)
    ]
    for consumer in consumers:
        consumer.subscribe(["orders"])

    def shared() -> bool:
        sizes = [len(consumer.assignment()) for consumer in consumers]
        return sizes[:2] == [2, 2] and sorted(sizes[2:]) == [0, 1, 1, 1, 1]

    while not shared():
        for consumer in consumers:
            consumer.poll(0.02)
    for group, count in members.items():
        mock_kafka.group(group).wait_stable(members=count)
    picture = pictures.groups(mock_kafka, "orders", "a", "b")
    for consumer in consumers:
        consumer.close()
    assert_drawn(picture, "Groups of a topic")


@pytest.mark.mock_kafka(brokers=1, topics={"orders": 1, "bills": 1})
def test_the_sequence_of_a_transaction(mock_kafka: Cluster) -> None:
    servers = {"bootstrap.servers": mock_kafka.bootstrap_servers}
    send(mock_kafka, "orders", 1)
    consumer = Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.poll(30) is not None
    producer = Producer({**servers, "transactional.id": "billing-0", "client.id": "billing"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("bills", "bill0")
    assert producer.flush(30) == 0
    position = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    consumer.close()
    mock_kafka.journal.wait(kind="transaction", state="CompleteCommit")
    assert_drawn(pictures.sequence(mock_kafka, "billing"), "The sequence of a transaction")
