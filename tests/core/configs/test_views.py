"""What is shown of configs: values, where they come from, and what is kept secret."""

from __future__ import annotations

import pytest

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.defs import BROKER_CONFIGS, TOPIC_CONFIGS
from mockbroker.core.configs.values import ConfigSource, Synonym
from mockbroker.core.configs.views import (
    ConfigEntry,
    broker_entries,
    client_metrics_entries,
    created_topic_entries,
    default_broker_entries,
    group_entries,
    logger_entries,
    topic_entries,
)


def entry(entries, name: str) -> ConfigEntry:
    (found,) = [e for e in entries if e.name == name]
    return found


def topic_entry(cluster: Cluster, name: str, **configs: str) -> ConfigEntry:
    overrides = {key.replace("_", "."): value for key, value in configs.items()}
    return entry(topic_entries(cluster, cluster.create_topic("t", configs=overrides), 1), name)


def test_a_topic_shows_every_config_that_is_not_internal():
    cluster = Cluster()
    shown = [e.name for e in topic_entries(cluster, cluster.create_topic("t"), 1)]
    assert len(shown) == len(TOPIC_CONFIGS) - 1 == 33
    assert "internal.segment.bytes" not in shown
    assert topic_entry(Cluster(), "internal.segment.bytes", internal_segment_bytes="9").value == "9"


@pytest.mark.covers("S37")
def test_an_override_stands_before_what_it_overrides():
    shown = topic_entry(Cluster(), "min.insync.replicas", min_insync_replicas="2")
    assert (shown.value, shown.source, shown.read_only) == ("2", ConfigSource.DYNAMIC_TOPIC, False)
    assert shown.synonyms == [
        Synonym("min.insync.replicas", "2", ConfigSource.DYNAMIC_TOPIC),
        Synonym("min.insync.replicas", "1", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        Synonym("min.insync.replicas", "1", ConfigSource.DEFAULT),
    ]


def test_a_default_in_another_unit_is_no_synonym_until_the_finest_unit_is_set():
    assert topic_entry(Cluster(), "retention.ms").synonyms == []
    cluster = Cluster(configs={"log.retention.hours": "2"})
    shown = topic_entry(cluster, "retention.ms")
    assert (shown.value, shown.source, shown.synonyms) == ("7200000", ConfigSource.DEFAULT, [])
    cluster = Cluster(configs={"log.retention.ms": "9"})
    assert topic_entry(cluster, "retention.ms").synonyms == [
        Synonym("log.retention.ms", "9", ConfigSource.STATIC_BROKER),
        Synonym("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]


def test_values_are_shown_as_parsed_and_a_new_topics_as_they_came():
    assert topic_entry(Cluster(), "retention.ms", retention_ms=" 5 ").value == "5"
    created = entry(created_topic_entries(Cluster(), {"retention.ms": " 5 "}), "retention.ms")
    assert (created.value, created.source) == (" 5 ", ConfigSource.DYNAMIC_TOPIC)


def test_a_new_topics_configs_come_by_name_with_their_sources():
    cluster = Cluster(configs={"log.retention.hours": "1", "message.max.bytes": "5"})
    entries = list(created_topic_entries(cluster, {}))
    assert [e.name for e in entries] == sorted(e.name for e in entries)
    assert len(entries) == 33
    assert entry(entries, "retention.ms")[1:3] == ("3600000", ConfigSource.STATIC_BROKER)
    assert entry(entries, "max.message.bytes")[1:3] == ("5", ConfigSource.STATIC_BROKER)
    assert entry(entries, "segment.ms")[1:3] == ("604800000", ConfigSource.DEFAULT)
    assert entry(entries, "min.insync.replicas").source is ConfigSource.DYNAMIC_DEFAULT_BROKER


@pytest.mark.covers("S304")
def test_a_broker_shows_every_config_with_type_and_update_mode():
    cluster = Cluster()
    entries = list(broker_entries(cluster, 2))
    assert len(entries) == sum(not d.internal for d in BROKER_CONFIGS.values()) == 340
    auto_create = entry(entries, "auto.create.topics.enable")
    assert auto_create[1:5] == ("true", ConfigSource.DEFAULT, True, False)
    assert auto_create.type == 1
    assert not entry(entries, "log.retention.ms").read_only
    assert entry(entries, "log.retention.minutes").value is None


def test_a_broker_shows_an_internal_config_that_is_set():
    name = "share.coordinator.state.topic.prune.interval.ms"
    assert name not in {entry.name for entry in broker_entries(Cluster(), 1)}
    cluster = Cluster(configs={name: "1000"})
    (entry,) = (entry for entry in broker_entries(cluster, 1) if entry.name == name)
    assert (entry.value, entry.source) == ("1000", ConfigSource.STATIC_BROKER)


def test_a_broker_shows_who_it_is():
    cluster = Cluster([BrokerSpec(7, "r")])
    entries = list(broker_entries(cluster, 7))
    assert entry(entries, "node.id")[1:3] == ("7", ConfigSource.STATIC_BROKER)
    assert entry(entries, "broker.id").synonyms == [
        Synonym("broker.id", "7", ConfigSource.STATIC_BROKER),
        Synonym("broker.id", "-1", ConfigSource.DEFAULT),
    ]
    assert entry(entries, "broker.rack").value == "r"


@pytest.mark.covers("S50")
def test_what_tests_changed_from_kafkas_defaults_is_static():
    shown = entry(broker_entries(Cluster(), 1), "group.initial.rebalance.delay.ms")
    assert shown.synonyms == [
        Synonym(shown.name, "0", ConfigSource.STATIC_BROKER),
        Synonym(shown.name, "3000", ConfigSource.DEFAULT),
    ]
    assert entry(broker_entries(Cluster(), 1), "offsets.topic.replication.factor").value == "3"
    alone = Cluster([BrokerSpec(1)])
    assert entry(broker_entries(alone, 1), "offsets.topic.replication.factor").value == "1"


def test_secrets_are_not_shown_nor_what_no_table_knows():
    cluster = Cluster(configs={"ssl.key.password": "s3cret"})
    cluster.configs.dynamic_broker[1] = {"for.a.plugin": "s3cret"}
    for name in ("ssl.key.password", "for.a.plugin"):
        shown = entry(broker_entries(cluster, 1), name)
        assert shown.sensitive
        assert "s3cret" not in repr(shown)


def test_the_defaults_of_all_brokers_are_only_those_that_are_set():
    cluster = Cluster()
    cluster.configs.dynamic_default["for.a.plugin"] = "x"
    shown = list(default_broker_entries(cluster))
    assert [e.name for e in shown] == ["min.insync.replicas", "for.a.plugin"]
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    assert shown[0].synonyms == [Synonym("min.insync.replicas", "1", source)]
    assert shown[1].value is None


def test_a_group_shows_its_own_configs_and_those_of_the_brokers():
    cluster = Cluster()
    cluster.configs.groups["g"] = {"consumer.session.timeout.ms": "50000"}
    entries = list(group_entries(cluster, "g", 1))
    assert len(entries) == 17
    assert entry(entries, "consumer.session.timeout.ms").synonyms == [
        Synonym("consumer.session.timeout.ms", "50000", ConfigSource.GROUP),
        Synonym("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
    ]
    assert entry(entries, "share.auto.offset.reset").synonyms == [
        Synonym("share.auto.offset.reset", "latest", ConfigSource.DEFAULT)
    ]


def test_a_metrics_subscription_shows_three_configs():
    cluster = Cluster()
    cluster.configs.client_metrics["m"] = {"metrics": "a"}
    entries = list(client_metrics_entries(cluster, "m"))
    assert [(e.name, e.value, e.source) for e in entries] == [
        ("interval.ms", "300000", ConfigSource.DEFAULT),
        ("match", "", ConfigSource.DEFAULT),
        ("metrics", "a", ConfigSource.CLIENT_METRICS),
    ]


def test_loggers_show_their_levels():
    root = entry(logger_entries(Cluster(), 1), "root")
    assert (root.value, root.source) == ("INFO", ConfigSource.DYNAMIC_BROKER_LOGGER)
