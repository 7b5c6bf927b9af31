"""Groups of the new protocol are described like any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker_protocol.consumer_protocol import decode_assignment
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


@pytest.fixture
def client(mock_kafka: Cluster) -> Iterator[Client]:
    with Client(mock_kafka.bootstrap_servers) as opened:
        yield opened


@pytest.mark.mock_kafka(brokers=2, topics={"t": 3})
def test_a_group_is_described_with_its_members_and_what_they_read(client: Client) -> None:
    client.coordinator("g").send(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            instance_id="i",
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
    )
    described = client.groups.describe("g")
    assert (described.group_state, described.protocol_type) == ("Stable", "consumer")
    assert described.protocol_data == "uniform"
    (member,) = described.members
    assert (member.member_id, member.group_instance_id) == ("m", "i")
    (line,) = decode_assignment(member.member_assignment).assigned_partitions
    assert (line.topic, line.partitions) == ("t", [0, 1, 2])


@pytest.mark.mock_kafka(kafka_version="3.6", topics={"t": 1})
def test_brokers_that_do_not_know_the_protocol_describe_classic_groups(client: Client) -> None:
    client.groups.commit("g", {("t", 0): 1})
    assert client.groups.describe("g").group_state == "Empty"
