"""Snapshots and resets over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"orders": 1}) as cluster:
        yield cluster


@pytest.fixture
def admin(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)


def produced(kafka: Cluster, *values: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(TIMEOUT_S) == 0


def values(admin: HttpClient) -> list[str]:
    path = "/v1/topics/orders/partitions/0/records"
    return [record["value"] for record in admin.get(path)]


def test_a_cluster_goes_back_to_a_snapshot_as_often_as_asked(
    kafka: Cluster, admin: HttpClient
) -> None:
    produced(kafka, "one")
    assert admin.post("/v1/snapshot", {"name": "after one"}, 201)["name"] == "after one"
    for _ in range(2):
        produced(kafka, "two", "three")
        assert values(admin) == ["one", "two", "three"]
        assert admin.request("POST", "/v1/restore", {"name": "after one"}).status == 204
        assert values(admin) == ["one"]
    assert [each["name"] for each in admin.get("/v1/snapshots")] == ["after one"]


def test_producers_that_have_gone_on_may_resume(kafka: Cluster, admin: HttpClient) -> None:
    config = {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True}
    producer = Producer(config)
    failed: list[object] = []

    def send(value: str) -> None:
        producer.produce(
            "orders", value, partition=0, on_delivery=lambda error, _: failed.append(error)
        )
        assert producer.flush(TIMEOUT_S) == 0

    send("one")
    admin.post("/v1/snapshot", {}, 201)
    send("lost")
    assert admin.request("POST", "/v1/restore", {"producers": "resume"}).status == 204
    send("two")
    assert failed == [None, None, None]
    assert values(admin) == ["one", "two"]


def test_a_reset_leaves_the_topics_of_the_start_empty(kafka: Cluster, admin: HttpClient) -> None:
    before = admin.get("/v1/topics/orders")["topic_id"]
    kafka.topic("more").create()
    produced(kafka, "one")
    admin.post("/v1/faults", {"do": {"delay": "1s"}}, 201)
    assert admin.request("POST", "/v1/reset", {}).status == 204
    assert values(admin) == []
    assert [topic["name"] for topic in admin.get("/v1/topics")] == ["orders"]
    assert admin.get("/v1/topics/orders")["topic_id"] != before
    assert admin.get("/v1/faults") == []


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/restore", {"name": "nothing"}, 404, "unknown snapshot 'nothing'; there is none"),
        ("/v1/restore", {"producers": "bump"}, 400, "keep"),
        ("/v1/snapshot", {"name": ""}, 400, "a text of 1 to"),
        ("/v1/snapshot", {"nam": "x"}, 400, "did you mean 'name'"),
    ],
)
def test_what_cannot_be_is_refused(
    admin: HttpClient, path: str, body: object, status: int, words: str
) -> None:
    answer = admin.request("POST", path, body)
    assert answer.status == status
    assert words in answer.body["detail"]
