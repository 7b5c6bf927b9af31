"""The history of one group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.pipeline.past.group_history import AssignmentView, _thinned
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S
from tests.support.waiting import wait_until

HISTORY = "/v1/journal/groups/billing"


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1) as cluster:
        cluster.topic("orders").create(2, 1)
        yield cluster


def member(kafka: Cluster, client_id: str, **settings: object) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "billing",
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    consumer.subscribe(["orders"])
    return consumer


def owners(found: list[AssignmentView]) -> dict[int, list[tuple[str | None, bool]]]:
    """By partition: the client and whether it has it still, in order."""
    by_partition: dict[int, list[tuple[str | None, bool]]] = {}
    for each in found:
        owned = each.client_id, each.to_seq is None
        by_partition.setdefault(each.partition, []).append(owned)
    return by_partition


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_go_from_member_to_member(kafka: Cluster, protocol: str) -> None:
    first = member(kafka, "first", **{"group.protocol": protocol})
    wait_until(lambda: first.poll(0.1) is None and len(first.assignment()) == 2)
    second = member(kafka, "second", **{"group.protocol": protocol})

    def shared() -> bool:
        first.poll(0.05)
        second.poll(0.05)
        return len(first.assignment()) == len(second.assignment()) == 1

    wait_until(shared)
    found = kafka.group("billing").history()
    assert found.type == protocol
    changes = owners(found.assignments)
    assert sorted(map(len, changes.values())) == [1, 2] or sorted(map(len, changes.values())) == [
        2,
        2,
    ]
    assert {each[-1] for each in changes.values()} == {("first", True), ("second", True)}
    assert all(each[0] == ("first", False) for each in changes.values() if len(each) == 2)
    for each in found.assignments:
        assert each.to_seq is None or each.from_seq < each.to_seq
    first.close()
    second.close()
    assert all(each.to_seq is not None for each in kafka.group("billing").history().assignments)


def test_states_commits_and_lag_follow_the_journal(kafka: Cluster) -> None:
    with closing(Client(kafka.bootstrap_servers)) as client:
        client.produce("orders", ["tea"] * 5, partition=0)
        consumer = member(kafka, "first")
        assert consumer.poll(TIMEOUT_S) is not None
        consumer.commit(asynchronous=False)
        client.produce("orders", ["tea"] * 2, partition=0)
    found = kafka.group("billing").history()
    assert [each.state for each in found.states] == [
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
    ]
    committed = {(each.topic, each.partition): each.offset for each in found.commits}
    assert committed["orders", 0] == 1
    [lag] = [each for each in found.lag if each.partition == 0]
    assert lag.points[-1][1:] == (1, 7, 7)
    assert lag.points[0][1] is None  # nothing was committed at first
    again = kafka.group("billing").history()
    assert (again.states, again.lag) == (found.states, found.lag)
    consumer.close()


def still(kafka: Cluster, partition: int = 0) -> int | None:
    """For how many ms of the cluster's time the member has not gone on."""
    [lag] = [each for each in kafka.group("billing").history().lag if each.partition == partition]
    return None if lag.still_since_ms is None else kafka.clock.now_ms - lag.still_since_ms


def test_a_member_that_does_not_go_on_is_told_with_the_time(kafka: Cluster) -> None:
    with closing(Client(kafka.bootstrap_servers)) as client:
        client.produce("orders", ["tea"] * 5, partition=0)
        consumer = member(kafka, "first")
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        kafka.clock.freeze()
        began = still(kafka)
        assert began is not None
        assert still(kafka, 1) is None  # it has partition 1, which is empty
        kafka.clock.advance("4s")
        assert still(kafka) == began + 4_000  # nothing is committed
        consumer.commit(message, asynchronous=False)
        assert still(kafka) == 0
        kafka.clock.advance("3s")
        consumer.commit(message, asynchronous=False)  # the same offset: it goes nowhere
        client.produce("orders", ["tea"], partition=0)
        assert still(kafka) == 3_000
        consumer.commit(offsets=[TopicPartition("orders", 0, 6)], asynchronous=False)
        assert still(kafka) is None  # no record waits
        kafka.clock.advance("5s")
        client.produce("orders", ["tea"], partition=0)
        assert still(kafka) == 0
        consumer.close()
        assert still(kafka) is None  # no member has the partition


def test_offsets_that_a_transaction_commits_move_when_it_ends(kafka: Cluster) -> None:
    with closing(Client(kafka.bootstrap_servers)) as client:
        client.produce("orders", ["tea"] * 5, partition=0)
    consumer = member(kafka, "first")
    assert consumer.poll(TIMEOUT_S) is not None
    servers = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    producer = Producer({**servers, "transactional.id": "till"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    offsets = [TopicPartition("orders", 0, 3)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
    kafka.clock.freeze()
    began = still(kafka)
    assert began is not None
    kafka.clock.advance("4s")
    assert still(kafka) == began + 4_000
    producer.commit_transaction(TIMEOUT_S)
    assert still(kafka) == 0
    [lag] = [each for each in kafka.group("billing").history().lag if each.partition == 0]
    assert [point[1] for point in lag.points][-2:] == [None, 3]
    consumer.close()


def test_a_group_may_have_any_name(kafka: Cluster) -> None:
    """Kafka allows everything, a slash included."""
    kafka.group("a/b <c>").set_offsets({("orders", 0): 0})
    found = kafka.group("a/b <c>").history()
    assert (found.group, [each.offset for each in found.commits]) == ("a/b <c>", [0])


def test_only_the_newest_of_each_can_be_asked_for(kafka: Cluster) -> None:
    consumer = member(kafka, "first")
    wait_until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 2)
    admin = HttpClient(kafka.admin_url)
    found = admin.get("/v1/journal/groups/billing", newest=1)
    whole = admin.get("/v1/journal/groups/billing")
    assert [each["state"] for each in found["states"]] == ["Stable"]
    for name in ("states", "assignments", "commits"):
        assert found[name] == whole[name][-1:]
    assert found["left_out"] == len(whole["states"]) - 1 + len(whole["assignments"]) - 1
    consumer.close()


def test_a_group_of_which_nothing_is_known_has_no_history(kafka: Cluster) -> None:
    found = HttpClient(kafka.admin_url).get("/v1/journal/groups/nobody")
    assert (found["type"], found["states"], found["assignments"], found["lag"]) == (
        None,
        [],
        [],
        [],
    )


def test_points_are_thinned_evenly() -> None:
    points = [(at, None, None, at) for at in range(100)]
    assert _thinned(points, 3) == [points[0], points[50], points[99]]
    assert _thinned(points, 100) == points
