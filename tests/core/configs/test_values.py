"""Configs in force: layers over defaults, and what topics and groups take from brokers."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.values import ClusterConfigs, ConfigSource, TopicConfigs, check_static
from mockbroker.core.errors import ConfigError


def sources(configs: ClusterConfigs, name: str, node_id: int | None = None) -> list[ConfigSource]:
    return [synonym.source for synonym in configs.layers(name, node_id)]


@pytest.mark.parametrize(
    ("overrides", "key", "hint"),
    [
        ({"no.such": "1"}, "no.such", "no broker config"),
        ({"num.partition": "1"}, "num.partition", "did you mean 'num.partitions'?"),
        (
            {"mockbroker.admin.streams.mx": "1"},
            "mockbroker.admin.streams.mx",
            "did you mean 'mockbroker.admin.streams.max'?",
        ),
        ({"retention.ms": "1"}, "retention.ms", "log.retention.ms"),
        ({"num.partitions": "none"}, "num.partitions", "number"),
        ({"num.partitions": "0"}, "num.partitions", "Value must be at least 1"),
        ({"node.id": "4"}, "node.id", "itself"),
        ({"record.validation": "sometimes"}, "record.validation", "always"),
    ],
)
def test_a_bad_config_at_start_is_named_with_the_reason(overrides, key, hint):
    with pytest.raises(ConfigError) as refused:
        check_static({"num.network.threads": "2"} | overrides)
    assert refused.value.key == key
    assert hint in refused.value.reason


def test_the_strongest_layer_wins_and_all_are_listed():
    configs = ClusterConfigs({"num.io.threads": "4"})
    assert configs.get("num.io.threads") == 4
    configs.dynamic_default["num.io.threads"] = "5"
    configs.dynamic_broker[2] = {"num.io.threads": "6"}
    configs.changed()
    assert configs.get("num.io.threads") == configs.get_for(1, "num.io.threads") == 5
    assert configs.get_for(2, "num.io.threads") == 6
    assert sources(configs, "num.io.threads", 2) == [
        ConfigSource.DYNAMIC_BROKER,
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        ConfigSource.STATIC_BROKER,
        ConfigSource.DEFAULT,
    ]


def test_without_overrides_the_default_is_in_force():
    configs = ClusterConfigs({})
    assert configs.get("message.max.bytes") == 1048588
    assert configs.get("log.retention.ms") is None
    assert sources(configs, "log.retention.ms") == []


def test_a_change_is_seen_once_it_is_told():
    configs = ClusterConfigs({})
    assert configs.get("log.retention.ms") is None
    configs.dynamic_default["log.retention.ms"] = "7"
    configs.changed()
    assert (configs.get("log.retention.ms"), configs.version) == (7, 1)


@pytest.mark.parametrize(
    ("static", "name", "value"),
    [
        ({}, "retention.ms", 604_800_000),
        ({"log.retention.hours": "1"}, "retention.ms", 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, "retention.ms", 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, "retention.ms", 3),
        ({"log.retention.hours": "-1"}, "retention.ms", -1),
        ({"log.roll.hours": "2"}, "segment.ms", 7_200_000),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": "9"}, "flush.ms", 9),
        ({"message.max.bytes": "5000"}, "max.message.bytes", 5000),
        ({}, "follower.replication.throttled.replicas", ()),
        ({}, "remote.storage.enable", False),
    ],
)
def test_topics_take_their_defaults_from_the_brokers(static, name, value):
    assert ClusterConfigs(static).topic_default(name) == value


def test_a_topics_configs_are_typed_attributes_that_follow_changes_in_place():
    cluster = ClusterConfigs({})
    topic = TopicConfigs(cluster, {"cleanup.policy": "compact", "min.insync.replicas": "2"})
    assert topic.cleanup_policy == ("compact",)
    assert (topic.compacted, topic.log_append_time) == (True, False)
    assert (topic.min_insync_replicas, topic.retention_ms) == (2, 604_800_000)
    cluster.dynamic_default["log.retention.ms"] = "10"
    cluster.changed()
    topic.resolve()
    assert topic.retention_ms == 10
    topic.replace({"message.timestamp.type": "LogAppendTime"})
    assert (topic.compacted, topic.log_append_time) == (False, True)
    assert topic.overrides == {"message.timestamp.type": "LogAppendTime"}


def test_group_configs_fall_back_to_the_brokers():
    configs = ClusterConfigs({"group.consumer.session.timeout.ms": "50000"})
    configs.groups["g"] = {"consumer.heartbeat.interval.ms": "6000"}
    assert configs.group_value("g", "consumer.session.timeout.ms") == 50_000
    assert configs.group_value("g", "consumer.heartbeat.interval.ms") == 6_000
    assert configs.group_value("other", "consumer.heartbeat.interval.ms") == 5_000
    assert configs.group_value("g", "share.auto.offset.reset") == "latest"
