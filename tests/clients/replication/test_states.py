"""What the controller goes through as topics come and brokers go, by the admin API."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from mockbroker import Cluster
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S, Delivery, admin_client, flush, produce, settings
from tests.support.waiting import wait_until

CREATION_MS = 60_000


@pytest.fixture(scope="module")
def slow() -> Iterator[Cluster]:
    """Three brokers whose controller takes a minute to bring a new partition online."""
    with Cluster(brokers=3, configs={"mockbroker.partition.creation.ms": CREATION_MS}) as cluster:
        yield cluster


@pytest.mark.covers("S36", "S302")
def test_a_topic_is_assigned_stored_and_brought_online_step_by_step(slow: Cluster) -> None:
    """Between the steps Metadata says LEADER_NOT_AVAILABLE; a producer that was not changed in any
    way asks again until there is a leader.
    """
    api, journal = HttpClient(slow.admin_url), slow.journal
    slow.clock.freeze()
    new = NewTopic("slow", 1, replica_assignment=[[2, 3]])
    admin = admin_client(slow.bootstrap_servers)
    admin.create_topics([new])["slow"].result(TIMEOUT_S)
    [partition] = api.get("/v1/controller", topic="slow")["partitions"]
    assert (partition["state"], partition["leader_id"]) == ("NewPartition", -1)
    assert partition["replicas"] == {"2": "NewReplica", "3": "NewReplica"}

    producer, delivery = Producer(settings(slow.bootstrap_servers)), Delivery()
    producer.produce("slow", "patient", partition=0, on_delivery=delivery)
    journal.wait(2, kind="response", api="Metadata", topic="slow", error="LEADER_NOT_AVAILABLE")
    assert delivery.messages == []
    slow.clock.advance(CREATION_MS)
    flush(producer)
    assert (delivery.errors, delivery.offsets) == ([], [0])

    journal.in_order(
        {"kind": "partition", "topic": "slow", "state": "NewPartition"},
        {"kind": "replica", "topic": "slow", "broker": 2, "state": "NewReplica"},
        {"kind": "response", "api": "Metadata", "error": "LEADER_NOT_AVAILABLE"},
        {"kind": "election", "topic": "slow", "change": "LeaderChanged", "reason": "created"},
        {"kind": "partition", "topic": "slow", "state": "OnlinePartition"},
        {"kind": "replica", "topic": "slow", "broker": 2, "state": "OnlineReplica"},
        {"kind": "append", "topic": "slow"},
    )
    steps = api.get("/v1/controller/history", topic="slow")
    at = {each["state"]: each["at_ms"] for each in steps if each["what"] == "partition"}
    assert at["OnlinePartition"] - at["NewPartition"] == CREATION_MS


@pytest.mark.covers("S38")
def test_what_a_request_did_to_topics_is_one_event_with_the_assignment(mock_kafka: Cluster) -> None:
    """Two created by one request, one deleted by another: a controller of Kafka 4 writes the
    records of a request together, and never those of two. What an action does at one go is one
    event as well.
    """
    api = HttpClient(mock_kafka.admin_url)
    mock_kafka.topic("old").create()
    stream = api.stream("/v1/journal/stream?kind=topics")
    admin = admin_client(mock_kafka.bootstrap_servers)
    new = [NewTopic("a", 2, replica_assignment=[[1, 2], [2, 3]]), NewTopic("b", 1, 1)]
    for future in admin.create_topics(new).values():
        future.result(TIMEOUT_S)
    for future in admin.delete_topics(["old"]).values():
        future.result(TIMEOUT_S)
    mock_kafka.act("recreate_topic", topic="b")

    told = []
    while len(told) < 4:
        line = stream.readline().decode()
        if line.startswith("data:"):
            told.append(json.loads(line.removeprefix("data:"))["message"])
    stream.close()
    created, _, recreated = told[1:]
    names = [[[t["topic"] for t in e[how]] for how in ("created", "deleted")] for e in told[1:]]
    assert names == [[["a", "b"], []], [[], ["old"]], [["b"], ["b"]]]
    first, second = created["created"]
    assert first["assignment"] == [[1, 2], [2, 3]]
    assert len(second["assignment"]) == 1
    assert recreated["created"][0]["topic_id"] != second["topic_id"]
    assert recreated["deleted"] == [second]


@pytest.mark.covers("S302")
def test_the_states_of_controller_partitions_and_replicas_have_a_history(
    mock_kafka: Cluster,
) -> None:
    """A broker dies and comes back: who is offline now, and when each step was."""
    api = HttpClient(mock_kafka.admin_url)
    mock_kafka.call(lambda c: c.create_topic("t", assignments={0: [1], 1: [2]}))
    produce(mock_kafka.bootstrap_servers, "t", ["a"])
    mock_kafka.clock.freeze()
    began_ms = api.get("/v1/clock")["now_ms"]
    mock_kafka.broker(1).stop(how="unclean")
    now = api.get("/v1/controller", topic="t")
    assert now["node_id"] != 1
    states = [(each["state"], each["replicas"]) for each in now["partitions"]]
    assert states == [
        ("OfflinePartition", {"1": "OfflineReplica"}),
        ("OnlinePartition", {"2": "OnlineReplica"}),
    ]
    mock_kafka.clock.advance(5_000)
    mock_kafka.broker(1).start()
    wait_until(lambda: api.get("/v1/controller", topic="t")["partitions"][0]["leader_id"] == 1)
    steps = [e for e in api.get("/v1/controller/history") if e["at_ms"] >= began_ms]
    partition = [
        (each["at_ms"] - began_ms, each["former"], each["state"])
        for each in steps
        if each["what"] == "partition" and each["topic"] == "t"
    ]
    assert partition == [
        (0, "OnlinePartition", "OfflinePartition"),
        (5_000, "OfflinePartition", "OnlinePartition"),
    ]
    replica = [
        (each["at_ms"] - began_ms, each["state"])
        for each in steps
        if each["what"] == "replica" and (each["topic"], each["node_id"]) == ("t", 1)
    ]
    assert replica == [(0, "OfflineReplica"), (5_000, "OnlineReplica")]
    [controller] = [each for each in steps if each["what"] == "controller"]
    assert (controller["at_ms"], controller["node_id"]) == (began_ms, now["node_id"])
    assert controller["epoch"] == now["epoch"]
