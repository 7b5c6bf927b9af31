"""Views of a cluster over HTTP."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S


@pytest.fixture(scope="module", autouse=True)
def work(kafka: Cluster) -> None:
    """Three records, and a group that has committed one."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in ("one", "two", "three"):
        producer.produce("orders", value, key="k", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def test_the_cluster_and_its_brokers(kafka: Cluster, admin: HttpClient) -> None:
    assert admin.get("/v1/cluster")["brokers"] == 3
    brokers = admin.get("/v1/brokers")
    assert [broker["node_id"] for broker in brokers] == [1, 2, 3]
    listeners = [broker["listeners"]["PLAINTEXT"] for broker in brokers]
    assert listeners == kafka.bootstrap_servers.split(",")


def test_topics_and_partitions(admin: HttpClient) -> None:
    assert "orders" in [topic["name"] for topic in admin.get("/v1/topics")]
    assert admin.get("/v1/topics/orders")["records"] == 3
    partitions = admin.get("/v1/topics/orders/partitions")
    assert [each["high_watermark"] for each in partitions] == [3, 0]
    assert admin.get("/v1/topics/orders/partitions/0") == partitions[0]


def test_records_without_a_consumer(admin: HttpClient) -> None:
    path = "/v1/topics/orders/partitions/0/records"
    records = admin.get(path, offset=1, limit=1)
    assert [(each["offset"], each["key"], each["value"]) for each in records] == [(1, "k", "two")]
    assert len(admin.get(path)) == 3


def test_groups_and_lag(admin: HttpClient) -> None:
    [lag] = admin.get("/v1/lag", group="billing")
    assert (lag["topic"], lag["committed"], lag["log_end_offset"]) == ("orders", 1, 3)
    assert (lag["lag"], lag["lag_read_committed"]) == (2, 2)
    assert admin.get("/v1/lag", group="nobody") == []
    assert [group["group"] for group in admin.get("/v1/groups")] == ["billing"]


def test_transactions_and_those_that_are_open(kafka: Cluster, admin: HttpClient) -> None:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "payments"}
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("orders", "coffee", partition=1)
    assert producer.flush(TIMEOUT_S) == 0
    [transaction] = admin.get("/v1/transactions")
    assert (transaction["transactional_id"], transaction["state"]) == ("payments", "Ongoing")
    [still_open] = admin.get("/v1/transactions/open")
    assert (still_open["topic"], still_open["partition"], still_open["hangs"]) == (
        "orders",
        1,
        False,
    )
    connected = admin.get("/v1/connections")
    assert any(each["client_software"].startswith("confluent-kafka") for each in connected)
    producer.abort_transaction(TIMEOUT_S)


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/v1/topics/order", "there is no topic 'order'"),
        ("/v1/topics/orders/partitions/7", "has partitions 0 to 1, not 7"),
        ("/v1/topics/orders/partitions/0/records?broker=9", "broker 9 has no replica"),
        ("/v1/topics/orders/partitions/x", "Not Found"),
    ],
)
def test_what_is_not_there_is_404(admin: HttpClient, path: str, detail: str) -> None:
    answer = admin.request("GET", path)
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert detail in answer.body["detail"]


def test_a_number_in_a_path_has_some_digits(admin: HttpClient) -> None:
    """More are no partition, and no error of the server."""
    for number in ("7", "9" * 18, "9" * 5_000):
        answer = admin.request("GET", f"/v1/topics/orders/partitions/{number}/records")
        assert answer.status == 404


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("limit=" + "9" * 5_000, "limit"),
        ("ofset=1", "ofset"),
        ("offset=-1", "offset"),
    ],
)
def test_a_query_that_cannot_be_names_the_parameter(
    admin: HttpClient, query: str, field: str
) -> None:
    answer = admin.request("GET", f"/v1/topics/orders/partitions/0/records?{query}")
    assert (answer.status, answer.body["field"]) == (400, field)
