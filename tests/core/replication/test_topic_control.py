"""The controller's part of CreateTopics and DeleteTopics."""

from __future__ import annotations

import pytest

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.events import PartitionsMoved
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from mockbroker_protocol import ErrorCode


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_internal_topics_have_three_replicas_or_as_many_as_there_are_brokers(brokers, factor):
    cluster = Cluster([BrokerSpec(n) for n in range(brokers)], seed=1)
    topic = cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    assert {len(partition.replicas) for partition in topic.partitions} == {factor}


def test_requested_numbers_override_the_defaults():
    cluster = Cluster([BrokerSpec(1)], {"offsets.topic.replication.factor": "2"})
    with pytest.raises(ApiError) as refused:
        cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    assert refused.value.error is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.covers("S31")
def test_a_created_topic_has_its_replicas_on_different_brokers(cluster):
    topic = cluster.create_topic("jinx01", 1, 2)
    (partition,) = topic.partitions
    assert len(set(partition.replicas)) == 2
    assert partition.isr == partition.replicas
    assert (partition.leader_id, partition.leader_epoch) == (partition.replicas[0], 0)
    assert cluster.topics["jinx01"] is cluster.topics_by_id[topic.topic_id] is topic
    assert (
        cluster.partition("jinx01", 0)
        is cluster.image.partition_by_id(topic.topic_id, 0)
        is partition
    )
    assert cluster.partition("jinx01", 1) is cluster.partition("other", 0) is None
    assert cluster.image.partition_by_id(bytes(16), 0) is None
    assert cluster.image.partition_by_id(topic.topic_id, -1) is None


@pytest.mark.covers("S35")
def test_a_manual_assignment_is_used(cluster):
    topic = cluster.create_topic("t", assignments={0: [3, 1], 1: [2, 3]})
    assert [partition.replicas for partition in topic.partitions] == [[3, 1], [2, 3]]


def test_a_topic_created_again_has_another_id(cluster):
    first = cluster.create_topic("t").topic_id
    cluster.delete_topic("t")
    assert "t" not in cluster.topics
    assert first not in cluster.topics_by_id
    assert cluster.create_topic("t").topic_id != first


def test_observers_and_partitions_are_notified_after_the_deletion_of_a_topic(cluster):
    topic = cluster.create_topic("t")
    seen = []
    cluster.on_topic_deleted.append(lambda gone: seen.append((gone, "t" in cluster.topics)))
    cluster.delete_topic("t")
    assert seen == [(topic, False)]
    assert topic.partitions[0].deleted
    with pytest.raises(ApiError) as refused:
        cluster.delete_topic("t")
    assert refused.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_brokers_forget_where_a_deleted_topic_was_flushed(cluster):
    topic = cluster.create_topic("t", assignments={0: [1, 2]})
    dirs = [cluster.brokers[node_id].log_dirs for node_id in (1, 2)]
    for each in dirs:
        each.recovery_points[topic.partitions[0].key] = 0
    cluster.delete_topic("t")
    assert [each.recovery_points for each in dirs] == [{}, {}]


@pytest.mark.covers("S44")
def test_internal_topics_have_kafkas_partitions_and_configs(cluster):
    offsets = cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    assert cluster.ensure_internal_topic(GROUP_METADATA_TOPIC) is offsets
    assert (offsets.is_internal, len(offsets.partitions)) == (True, 50)
    assert offsets.configs.overrides == {
        "segment.bytes": "104857600",
        "compression.type": "producer",
        "cleanup.policy": "compact",
    }
    transactions = cluster.ensure_internal_topic(TRANSACTION_STATE_TOPIC)
    assert len(transactions.partitions) == 50
    assert transactions.configs.overrides == {
        "segment.bytes": "104857600",
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
    }
    states = cluster.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
    assert len(states.partitions) == 50
    assert states.configs.overrides == {
        "segment.bytes": "104857600",
        "compression.type": "producer",
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "min.insync.replicas": "2",
    }


def test_a_key_has_the_same_coordinator_partition_before_and_after_the_topic_exists(cluster):
    before = cluster.find_coordinator_partition("group-7")
    cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    assert before == cluster.find_coordinator_partition("group-7")
    assert before == coordinator_partition("group-7", 50)


def test_added_partitions_are_events_and_have_leaders(cluster):
    topic = cluster.create_topic("t", assignments={0: [1, 2]})
    heard: list[object] = []
    cluster.runtime.on_event.append(heard.append)
    cluster.topic_control.add_partitions(topic, 3, [[2, 3], [3, 1]])
    moved = [each for each in heard if isinstance(each, PartitionsMoved)]
    assert [(each.partitions, each.former, each.state) for each in moved] == [
        ((1, 2), "NonExistentPartition", "NewPartition"),
        ((1, 2), "NewPartition", "OnlinePartition"),
    ]
    assert [(p.index, p.leader_id, p.replicas) for p in topic.partitions] == [
        (0, 1, [1, 2]),
        (1, 2, [2, 3]),
        (2, 3, [3, 1]),
    ]
    with pytest.raises(ApiError) as refused:
        cluster.topic_control.add_partitions(topic, 3)
    assert refused.value.error is ErrorCode.INVALID_PARTITIONS


def test_a_topic_named_in_metadata_gets_the_defaults_of_its_kind(cluster):
    create = cluster.topic_control.auto_create
    assert len(create("t").partitions) == 1
    assert len(create(GROUP_METADATA_TOPIC).partitions) == 50
    assert create(GROUP_METADATA_TOPIC) is cluster.topics[GROUP_METADATA_TOPIC]
