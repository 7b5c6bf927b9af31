"""Overrides of resources: each change is one event, and no event tells a secret."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.alter import AlterConfigOp, OpType, alter_incrementally
from mockbroker.core.configs.resources import (
    ConfigResourceType,
    named_resources,
    overrides_of,
    set_overrides,
    shown,
)
from mockbroker.core.errors import ApiError
from mockbroker.core.events import ChangedConfig, ConfigsChanged, Event, TopicsChanged
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.restore import restore
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.ask import ask, nodes

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
GROUP, METRICS = ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS
PASSWORD = "ssl.keystore.password"


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(now_ms=lambda: 7, seed=1)
    cluster.create_topic("t", configs={"retention.ms": "5"})
    return cluster


@pytest.fixture
def told(cluster: Cluster) -> list[Event]:
    found: list[Event] = []
    cluster.runtime.on_event.append(found.append)
    return found


@pytest.mark.parametrize(
    ("kind", "name", "config", "value"),
    [
        (TOPIC, "t", "segment.ms", "7"),
        (BROKER, "", "log.retention.ms", "9"),
        (BROKER, "2", "log.cleaner.threads", "2"),
        (GROUP, "g", "consumer.session.timeout.ms", "46000"),
        (METRICS, "m", "interval.ms", "100"),
    ],
)
def test_a_config_that_is_set_and_deleted_is_told_with_both_values(
    cluster, told, kind, name, config, value
):
    before = dict(overrides_of(cluster, kind, name))
    set_overrides(cluster, kind, name, {**before, config: value})
    assert overrides_of(cluster, kind, name)[config] == value
    set_overrides(cluster, kind, name, before)
    assert overrides_of(cluster, kind, name) == before
    changed = [event for event in told if isinstance(event, ConfigsChanged)]
    assert changed == [
        ConfigsChanged(7, kind.name.lower(), name, (ChangedConfig(config, None, value),)),
        ConfigsChanged(7, kind.name.lower(), name, (ChangedConfig(config, value, None),)),
    ]


def test_one_event_has_all_changes_and_no_config_that_stays(cluster, told):
    set_overrides(cluster, TOPIC, "t", {"retention.ms": "5", "segment.ms": "7"})
    told.clear()
    set_overrides(cluster, TOPIC, "t", {"retention.ms": "6", "max.message.bytes": "100"})
    [event] = told
    assert [(each.name, each.former, each.value) for each in event.configs] == [
        ("max.message.bytes", None, "100"),
        ("retention.ms", "5", "6"),
        ("segment.ms", "7", None),
    ]


def test_without_a_change_there_is_no_event(cluster, told):
    """Kafka writes such a record again; the cluster is what it was."""
    set_overrides(cluster, TOPIC, "t", {"retention.ms": "5"})
    with pytest.raises(ApiError):
        alter_incrementally(
            cluster,
            cluster.brokers[1],
            (TOPIC, "t"),
            [AlterConfigOp("retention.ms", OpType.SET, "never")],
            validate_only=False,
        )
    changes = [AlterConfigOp("retention.ms", OpType.SET, "8")]
    alter_incrementally(cluster, cluster.brokers[1], (TOPIC, "t"), changes, validate_only=True)
    assert told == []


def test_a_password_and_an_unknown_config_are_told_without_their_values(cluster, told):
    own = {PASSWORD: "s3cret", f"listener.name.a.{PASSWORD}": "s3cret", "mine": "s3cret"}
    set_overrides(cluster, BROKER, "1", own)
    set_overrides(cluster, BROKER, "1", {**own, PASSWORD: "other"})
    first, second = told
    assert "s3cret" not in str(told)
    assert {(each.former, each.value) for each in first.configs} == {(None, "[hidden]")}
    assert second.configs == (ChangedConfig(PASSWORD, "[hidden]", "[hidden]"),)
    assert set(shown(BROKER, own).values()) == {"[hidden]"}
    assert shown(BROKER, {"log.retention.ms": "3"}) == {"log.retention.ms": "3"}


def test_a_broker_has_its_id_as_its_name(cluster, told):
    set_overrides(cluster, BROKER, "02", {"log.cleaner.threads": "2"})
    assert [event.resource_name for event in told] == ["2"]
    assert (BROKER, "2") in list(named_resources(cluster))


def test_a_topic_is_created_and_deleted_with_its_configs(cluster, told):
    cluster.create_topic("u", configs={"segment.ms": "7"})
    set_overrides(cluster, TOPIC, "u", {"segment.ms": "8"})
    cluster.delete_topic("u")
    created, deleted = [event for event in told if isinstance(event, TopicsChanged)]
    assert created.created[0].configs == {"segment.ms": "7"}
    assert deleted.deleted[0].configs == {"segment.ms": "8"}


def test_a_restore_tells_which_configs_it_brought_back(cluster, told):
    set_overrides(cluster, BROKER, "2", {"log.cleaner.threads": "2"})
    image = capture(cluster)
    set_overrides(cluster, BROKER, "2", {"log.cleaner.threads": "3"})
    set_overrides(cluster, GROUP, "g", {"consumer.session.timeout.ms": "46000"})
    told.clear()
    restore(cluster, image)
    changed = [event for event in told if isinstance(event, ConfigsChanged)]
    assert [(each.resource_name, each.configs) for each in changed] == [
        ("2", (ChangedConfig("log.cleaner.threads", "3", "2"),)),
        ("g", (ChangedConfig("consumer.session.timeout.ms", "46000", None),)),
    ]
    assert GROUP not in [kind for kind, _ in named_resources(cluster)]


def test_the_feature_of_eligible_leaders_tells_the_config_that_it_writes():
    node = nodes(1)
    node.cluster.configs.dynamic_default.clear()
    told: list[Event] = []
    node.cluster.runtime.on_event.append(told.append)
    for level, upgrade_type in ((0, 2), (1, 1)):
        update = FeatureUpdateKey(
            feature="eligible.leader.replicas.version",
            max_version_level=level,
            upgrade_type=upgrade_type,
        )
        ask(node, ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[update]))
    [event] = [event for event in told if isinstance(event, ConfigsChanged)]
    assert (event.resource_type, event.resource_name) == ("broker", "")
    assert event.configs == (ChangedConfig("min.insync.replicas", None, "1"),)
