"""Topics as groups see them, and the hash that says whether something about them has changed."""

from __future__ import annotations

import pytest

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.groups.modern.topics import ClusterTopics, metadata_hash


@pytest.fixture
def cluster() -> Cluster:
    return Cluster([BrokerSpec(1, "a"), BrokerSpec(2, "b")], seed=7)


def test_topics_are_found_by_name_and_id(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    topic = cluster.create_topic("t", 3, 1)
    info = topics.by_name("t")
    assert info is not None
    assert info[:3] == (topic.topic_id, "t", 3)
    assert topics.by_id(topic.topic_id) == info
    assert (topics.has(topic.topic_id), topics.has(bytes(16))) == (True, False)
    assert topics.by_name("u") is topics.by_id(bytes(16)) is None
    assert list(topics.names()) == ["t"]


def test_the_hash_is_of_the_topics_that_exist(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    assert metadata_hash(topics, {"t", "u"}) == 0
    cluster.create_topic("t", 1, 1)
    only = metadata_hash(topics, {"t"})
    assert only == metadata_hash(topics, {"u", "t"}) != 0
    cluster.create_topic("u", 1, 1)
    assert metadata_hash(topics, {"t"}) == only
    assert metadata_hash(topics, {"u", "t"}) != only


def test_the_hash_changes_with_partitions_racks_and_identity(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    seen = set()
    for replicas in ([1], [2]):
        cluster.create_topic("t", assignments={0: replicas})
        seen.add(metadata_hash(topics, {"t"}))
        cluster.topic_control.add_partitions(cluster.topics["t"], 2)
        seen.add(metadata_hash(topics, {"t"}))
        cluster.delete_topic("t")
    assert len(seen) == 4


def test_new_topics_are_noticed_and_others_are_not_new(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    cluster.create_topic("t", 1, 1)
    first = topics.created_version
    assert first == topics.version
    cluster.topic_control.add_partitions(cluster.topics["t"], 2)
    assert topics.created_version == first < topics.version
    cluster.delete_topic("t")
    assert topics.created_version == first < topics.version
    cluster.create_topic("t", 1, 1)
    assert topics.created_version == topics.version


def test_the_hash_is_any_signed_number_of_64_bits(cluster: Cluster) -> None:
    topics = ClusterTopics(cluster)
    hashes = []
    for number in range(20):
        cluster.create_topic(f"t{number}", 1, 1)
        hashes.append(metadata_hash(topics, {f"t{number}"}))
    assert -(1 << 63) <= min(hashes) < -(1 << 61)
    assert 1 << 61 <= max(hashes) < 1 << 63
