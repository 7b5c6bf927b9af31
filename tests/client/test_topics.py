from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.client import BrokerError, Client, Resource, UnknownTopicError


@pytest.fixture
def client(mock_kafka: Cluster):
    with Client(mock_kafka.bootstrap_servers) as client:
        yield client


def test_topics_are_created_listed_described_and_deleted(client: Client):
    client.topics.create("b", partitions=2, replication_factor=3)
    client.topics.create("a", partitions=1, replication_factor=1)
    assert [topic.name for topic in client.topics.all()] == ["a", "b"]
    described = client.topics.describe("b")
    assert [p.partition_index for p in described.partitions] == [0, 1]
    assert all(sorted(p.replica_nodes) == [1, 2, 3] for p in described.partitions)
    client.topics.delete("b")
    assert [topic.name for topic in client.topics.all()] == ["a"]


def test_internal_topics_are_listed_when_asked_for(client: Client):
    client.coordinator("g")
    assert client.topics.all() == []
    assert [topic.name for topic in client.topics.all(internal=True)] == ["__consumer_offsets"]


def test_configs_say_which_were_set(client: Client):
    client.topics.create("t", configs={"retention.ms": "60000"})
    configs = {config.name: config for config in client.configs.describe(Resource.TOPIC, "t")}
    assert (configs["retention.ms"].value, configs["retention.ms"].is_set) == ("60000", True)
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].is_set) == ("delete", False)


def test_a_topic_can_grow(client: Client):
    client.topics.create("t", partitions=1)
    client.topics.add_partitions("t", 3)
    assert len(client.topics.describe("t").partitions) == 3
    with pytest.raises(BrokerError, match="INVALID_PARTITIONS"):
        client.topics.add_partitions("t", 2)


def test_validating_creates_nothing(client: Client):
    client.topics.create("t", validate_only=True)
    assert client.topics.all() == []


def test_refusals_are_told(client: Client):
    client.topics.create("t")
    with pytest.raises(BrokerError, match=r"create topic t: .*\(TOPIC_ALREADY_EXISTS\)"):
        client.topics.create("t")
    with pytest.raises(BrokerError, match="INVALID_REPLICATION_FACTOR"):
        client.topics.create("u", replication_factor=4)
    with pytest.raises(BrokerError, match="delete topic u: "):
        client.topics.delete("u")
    with pytest.raises(UnknownTopicError, match="there is no topic u"):
        client.topics.describe("u")
