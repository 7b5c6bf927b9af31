"""Members of a classic group that read between their heartbeats."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import Consumer

from mockbroker import Cluster
from mockbroker.client import EARLIEST, Client, membership
from mockbroker.client.membership import assign_ranges
from tests.support.librdkafka import TIMEOUT_S


def test_ranges_come_in_the_order_of_members_and_the_first_get_more():
    subscribed = {"b": ["x", "y"], "a": ["x"], "c": ["x"]}
    assert assign_ranges(subscribed, {"x": 5, "y": 1}) == {
        "a": {"x": [0, 1]},
        "b": {"x": [2, 3], "y": [0]},
        "c": {"x": [4]},
    }


def test_a_topic_without_partitions_is_nobodys():
    assert assign_ranges({"a": ["x"]}, {"x": 0}) == {"a": {}}


def test_records_are_read_once_from_member_to_member(mock_kafka: Cluster):
    topic = mock_kafka.topic("orders").create(2)
    topic.produce_all([str(n) for n in range(10)])
    with Client(mock_kafka.bootstrap_servers) as client:
        first = client.consume_as_member("kitchen", "orders", start=EARLIEST)
        seen = [next(first).record.value for _ in range(4)]
        first.close()
        assert sum(mock_kafka.group("kitchen").offsets.values()) == 4
        assert mock_kafka.group("kitchen").members == []
        rest = client.consume_as_member("kitchen", "orders", start=EARLIEST, idle_timeout_s=0.1)
        seen += [found.record.value for found in rest]
    assert sorted(seen) == sorted(str(n).encode() for n in range(10))
    assert mock_kafka.group("kitchen").lag() == 0


def test_without_an_offset_the_end_is_where_it_begins_and_is_committed(mock_kafka: Cluster):
    topic = mock_kafka.topic("orders").create(1)
    topic.produce("before")
    with Client(mock_kafka.bootstrap_servers) as client:
        assert list(client.consume_as_member("kitchen", "orders", idle_timeout_s=0.1)) == []
        topic.produce("between")
        [found] = client.consume_as_member("kitchen", "orders", idle_timeout_s=0.1)
    assert found.record.value == b"between"


def test_it_shares_a_group_with_another_client(
    mock_kafka: Cluster, monkeypatch: pytest.MonkeyPatch
):
    """librdkafka joins; the member joins again at its next heartbeat, and each has a partition."""
    monkeypatch.setattr(membership, "HEARTBEAT_INTERVAL_S", 0.05)
    topic = mock_kafka.topic("orders").create(2)
    group = mock_kafka.group("kitchen")
    seen: list[bytes | None] = []

    def read() -> None:
        with Client(mock_kafka.bootstrap_servers, "ours") as client:
            for found in client.consume_as_member("kitchen", "orders", start=EARLIEST):
                seen.append(found.record.value)
                if found.record.value == b"end":
                    return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    group.wait_stable(1)
    other = Consumer(
        {
            "bootstrap.servers": mock_kafka.bootstrap_servers,
            "group.id": "kitchen",
            "client.id": "theirs",
            "partition.assignment.strategy": "range",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    other.subscribe(["orders"])
    while group.state != "Stable" or len(group.members) < 2 or not other.assignment():
        other.poll(0.05)
    owned = {each.client_id: each.assigned for each in group.members}
    assert sorted(map(str, owned.values())) == ["{'orders': [0]}", "{'orders': [1]}"]
    ours, theirs = (owned[name]["orders"][0] for name in ("ours", "theirs"))
    topic.partition(theirs).produce("for them")
    topic.partition(ours).produce("for us")
    topic.partition(ours).produce("end")
    [record] = other.consume(1, TIMEOUT_S)
    assert record.value() == b"for them"
    reader.join(TIMEOUT_S)
    assert seen == [b"for us", b"end"]
    other.close()
