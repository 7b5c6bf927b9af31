"""The cluster's metadata: brokers, topics, and who is told of changes."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ConfigError


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


def test_defaults_are_kafkas_but_for_the_rebalance_delay(cluster):
    assert list(cluster.brokers) == [1, 2, 3]
    assert cluster.config("num.partitions") == cluster.config("default.replication.factor") == 1
    assert cluster.config("group.initial.rebalance.delay.ms") == 0
    assert cluster.config("offsets.topic.replication.factor") == 3
    assert cluster.config("auto.create.topics.enable") is True


def test_bad_configs_and_releases_are_refused():
    with pytest.raises(ConfigError, match=r"^bogus: "):
        Cluster(configs={"bogus": "1"})
    with pytest.raises(ConfigError, match="kafka-version"):
        Cluster(kafka_version="1.0")


def test_a_cluster_without_a_seed_differs_from_the_one_before():
    first, second = (Cluster(now_ms=lambda at=at: at) for at in (1000, 2000))
    assert first.cluster_id != second.cluster_id
    assert len(first.cluster_id) == 22


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
    cluster.topic_control.add_partitions(topic, 2)
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
