"""Groups over HTTP: members, committed offsets, and their end."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer

from mockbroker import Cluster
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S

GROUP = "/v1/groups/a%2Fb"  # an id may have slashes


@pytest.fixture
def kafka(mock_kafka: Cluster) -> Cluster:
    mock_kafka.topic("orders").create(2)
    records = [{"value": str(n), "partition": n % 2, "timestamp_ms": n} for n in range(10)]
    mock_kafka.topic("orders").produce_all(records)
    return mock_kafka


@pytest.fixture
def api(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)


def committed(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["partition"], row["committed"]) for row in rows]


def test_offsets_are_set_for_a_group_that_need_not_exist(api: HttpClient) -> None:
    assert api.request("GET", f"{GROUP}/offsets").status == 404
    body = {"offsets": [{"topic": "orders", "partition": 1, "offset": 3, "metadata": "mine"}]}
    [row] = api.post(f"{GROUP}/offsets", body)
    assert (row["group"], row["committed"], row["lag"], row["metadata"]) == ("a/b", 3, 2, "mine")
    assert api.get(f"{GROUP}/offsets") == [row]
    assert api.get(GROUP)["state"] == "Empty"


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        ({"to": "earliest"}, [(0, 0), (1, 0)]),
        ({"to": "latest"}, [(0, 5), (1, 5)]),
        ({"to": 2}, [(0, 2), (1, 2)]),
        ({"to": 99}, [(0, 5), (1, 5)]),
        ({"at_ms": 5}, [(0, 3), (1, 2)]),
        ({"at_ms": 99, "partitions": [1]}, [(1, 5)]),
    ],
    ids=str,
)
def test_offsets_are_reset(
    api: HttpClient, target: dict[str, object], offsets: list[tuple[int, int]]
) -> None:
    rows = api.post(f"{GROUP}/offsets/reset", {"topic": "orders", **target})
    assert committed(rows) == offsets
    assert committed(api.get(f"{GROUP}/offsets")) == offsets


@pytest.mark.parametrize("target", [{}, {"to": 1, "at_ms": 1}, {"to": "first"}], ids=str)
def test_a_reset_needs_one_target(api: HttpClient, target: dict[str, object]) -> None:
    answer = api.request("POST", f"{GROUP}/offsets/reset", {"topic": "orders", **target})
    assert answer.status == 400


def test_offsets_are_deleted_by_topic_and_partition(api: HttpClient) -> None:
    api.post(f"{GROUP}/offsets/reset", {"topic": "orders", "to": 1})
    query = {"topic": "orders", "partition": 0}
    assert api.request("DELETE", f"{GROUP}/offsets", query=query).status == 204
    assert committed(api.get(f"{GROUP}/offsets")) == [(1, 1)]
    assert api.request("DELETE", f"{GROUP}/offsets", query={"partition": 1}).status == 400
    assert api.request("DELETE", f"{GROUP}/offsets").status == 204
    assert api.get(f"{GROUP}/offsets") == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_have_their_partitions_and_protect_their_group(
    kafka: Cluster, api: HttpClient, protocol: str
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "kitchen",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["orders"])
    assert len(consumer.consume(10, TIMEOUT_S)) == 10
    [member] = api.get("/v1/groups/kitchen")["members"]
    assert member["assigned"] == {"orders": [0, 1]}
    reset = {"topic": "orders", "to": 0}
    answer = api.request("POST", "/v1/groups/kitchen/offsets/reset", reset)
    assert (answer.status, answer.body["error"]) == (409, "UNKNOWN_MEMBER_ID")
    assert "has 1 members" in answer.body["detail"]
    answer = api.request("DELETE", "/v1/groups/kitchen")
    assert (answer.status, answer.body["error"]) == (409, "NON_EMPTY_GROUP")
    consumer.close()
    kafka.group("kitchen").wait_for("Empty")
    assert committed(api.post("/v1/groups/kitchen/offsets/reset", reset)) == [(0, 0), (1, 0)]
    assert api.request("DELETE", "/v1/groups/kitchen").status == 204
    assert api.request("DELETE", "/v1/groups/kitchen").status == 404


def test_a_commit_of_the_operator_is_in_the_journal(kafka: Cluster, api: HttpClient) -> None:
    api.post(f"{GROUP}/offsets/reset", {"topic": "orders", "to": 1, "partitions": [0]})
    [event] = kafka.journal.events(kind="commit")
    assert (event.group, event.client_id, event.offset) == ("a/b", "mockbroker-admin", 1)


def test_python_has_the_same(kafka: Cluster) -> None:
    group = kafka.group("billing")
    group.set_offsets({("orders", 0): 2, ("orders", 1): 3})
    assert group.offsets == {("orders", 0): 2, ("orders", 1): 3}
    group.reset_offsets("orders", "latest", partitions=[0])
    group.reset_offsets("orders", at_ms=0, partitions=[1])
    assert group.offsets == {("orders", 0): 5, ("orders", 1): 0}
    group.delete_offsets("orders", 0)
    assert group.offsets == {("orders", 1): 0}
    group.delete()
    assert kafka.groups() == []
