"""The cluster's metadata: brokers, topics, and who is told of changes."""

from __future__ import annotations

import pytest

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError, ConfigError
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker_protocol import ErrorCode


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


def one_broker(**more: object) -> Cluster:
    return Cluster([BrokerSpec(1)], seed=1, **more)  # type: ignore[arg-type]


def test_defaults_are_kafkas_but_for_the_rebalance_delay(cluster):
    assert list(cluster.brokers) == [1, 2, 3]
    assert cluster.config("num.partitions") == cluster.config("default.replication.factor") == 1
    assert cluster.config("group.initial.rebalance.delay.ms") == 0
    assert cluster.config("offsets.topic.replication.factor") == 3
    assert cluster.config("auto.create.topics.enable") is True


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_internal_topics_have_three_replicas_or_as_many_as_there_are_brokers(brokers, factor):
    cluster = Cluster([BrokerSpec(n) for n in range(brokers)], seed=1)
    topic = cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    assert {len(partition.replicas) for partition in topic.partitions} == {factor}


def test_what_is_asked_for_outranks_what_fits():
    cluster = one_broker(configs={"offsets.topic.replication.factor": "2"})
    with pytest.raises(ApiError) as refused:
        cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    assert refused.value.error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_bad_configs_and_releases_are_refused():
    with pytest.raises(ConfigError, match=r"^bogus: "):
        Cluster(configs={"bogus": "1"})
    with pytest.raises(ConfigError, match="kafka-version"):
        Cluster(kafka_version="1.0")


def test_a_cluster_without_a_seed_differs_from_the_one_before():
    first, second = (Cluster(now_ms=lambda at=at: at) for at in (1000, 2000))
    assert first.cluster_id != second.cluster_id
    assert len(first.cluster_id) == 22


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
def test_a_manual_assignment_is_honoured(cluster):
    topic = cluster.create_topic("t", assignments={0: [3, 1], 1: [2, 3]})
    assert [partition.replicas for partition in topic.partitions] == [[3, 1], [2, 3]]


def test_a_topic_created_again_has_another_id(cluster):
    first = cluster.create_topic("t").topic_id
    cluster.delete_topic("t")
    assert "t" not in cluster.topics
    assert first not in cluster.topics_by_id
    assert cluster.create_topic("t").topic_id != first


def test_deletion_tells_observers_and_partitions_once_the_topic_is_gone(cluster):
    topic = cluster.create_topic("t")
    seen = []
    cluster.on_topic_deleted.append(lambda gone: seen.append((gone, "t" in cluster.topics)))
    cluster.delete_topic("t")
    assert seen == [(topic, False)]
    assert topic.partitions[0].deleted
    with pytest.raises(ApiError) as refused:
        cluster.delete_topic("t")
    assert refused.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_observers_are_told_of_creations_and_of_configs(cluster):
    created, changed = [], []
    cluster.on_topic_created.append(created.append)
    cluster.on_configs_changed.append(changed.append)
    topic = cluster.create_topic("t")
    cluster.replace_topic_configs(topic, {"retention.ms": "1"})
    cluster.configs.dynamic_default["log.segment.bytes"] = "2000000"
    cluster.configs_changed()
    assert (created, changed) == ([topic], [topic, topic])
    assert (topic.configs.retention_ms, topic.configs.segment_bytes) == (1, 2_000_000)


def test_every_change_grows_the_epoch_and_drops_what_was_derived(cluster):
    topic, other = cluster.create_topic("t"), cluster.create_topic("u")

    def remember() -> int:
        cluster.image.memo["x"] = topic.memo["x"] = other.memo["x"] = 1
        return cluster.image.epoch

    before = remember()
    cluster.add_partitions(topic, 2)
    assert cluster.image.epoch > before
    assert (cluster.image.memo, topic.memo, other.memo) == ({}, {}, {"x": 1})
    before = remember()
    cluster.brokers[1].set_endpoint("PLAINTEXT", "h", 1)
    assert cluster.image.epoch > before
    assert (cluster.image.memo, topic.memo, other.memo) == ({}, {}, {})


def test_reachable_brokers_are_alive_and_have_the_listener(cluster):
    for node_id in (1, 2):
        cluster.brokers[node_id].set_endpoint("PLAINTEXT", "h", node_id)
    cluster.brokers[3].set_endpoint("OTHER", "h", 3)
    assert list(cluster.image.reachable_brokers("PLAINTEXT")) == [1, 2]
    cluster.stop_broker(1)
    assert list(cluster.image.reachable_brokers("PLAINTEXT")) == [2]
    assert cluster.controller_id == 2


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


def test_a_key_has_the_same_coordinator_partition_before_and_after_the_topic_exists(cluster):
    before = cluster.find_coordinator_partition("group-7")
    cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    assert before == cluster.find_coordinator_partition("group-7")
    assert before == coordinator_partition("group-7", 50)


def test_release_caps_decide_which_versions_are_served():
    cluster = Cluster(kafka_version="3.9")
    assert cluster.serves(1, 17)
    assert not cluster.serves(1, 18)
    assert not cluster.serves(76, 1)
    assert not cluster.serves(4711, 0)


def test_min_insync_replicas_is_a_cluster_default_where_eligible_leaders_are_tracked():
    assert Cluster(kafka_version="4.3").configs.dynamic_default == {"min.insync.replicas": "1"}
    assert Cluster(kafka_version="4.0").configs.dynamic_default == {}
    strict = Cluster(configs={"min.insync.replicas": "2"})
    assert strict.configs.dynamic_default == {"min.insync.replicas": "2"}


@pytest.mark.parametrize(("value", "walks"), [("headers", False), ("always", True)])
def test_record_validation_can_be_made_thorough(value, walks):
    assert Cluster(configs={"record.validation": value}).replication.walks_all_records is walks
