"""Altering configs: operations on overrides, and who may be altered through whom."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.alter import (
    AlterConfigOp,
    OpType,
    alter_incrementally,
    replace_overrides,
)
from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.errors import ApiError
from mockbroker_protocol import ErrorCode

TOPIC = (ConfigResourceType.TOPIC, "t")


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(seed=1)
    cluster.create_topic("t", configs={"retention.ms": "5"})
    return cluster


def alter(
    cluster: Cluster, resource: tuple[int, str], *changes: AlterConfigOp, **more: bool
) -> None:
    alter_incrementally(
        cluster, cluster.brokers[1], resource, list(changes), **{"validate_only": False, **more}
    )


def overrides(cluster: Cluster) -> dict[str, str]:
    return cluster.topics["t"].configs.overrides


def test_set_and_delete(cluster):
    alter(
        cluster,
        TOPIC,
        AlterConfigOp("segment.ms", OpType.SET, "7"),
        AlterConfigOp("retention.ms", OpType.DELETE, None),
        AlterConfigOp("never.set", OpType.DELETE, None),
    )
    assert overrides(cluster) == {"segment.ms": "7"}
    assert cluster.topics["t"].configs.segment_ms == 7


def test_append_begins_with_the_default_and_takes_each_item_once(cluster):
    alter(cluster, TOPIC, AlterConfigOp("cleanup.policy", OpType.APPEND, "compact,delete"))
    assert overrides(cluster)["cleanup.policy"] == "delete,compact"


def test_subtract_may_leave_nothing(cluster):
    alter(cluster, TOPIC, AlterConfigOp("cleanup.policy", OpType.SUBTRACT, "delete,compact"))
    assert overrides(cluster)["cleanup.policy"] == ""
    assert cluster.topics["t"].configs.cleanup_policy == ()


def test_one_bad_change_leaves_all_as_it_was(cluster):
    with pytest.raises(ApiError):
        alter(
            cluster,
            TOPIC,
            AlterConfigOp("segment.ms", OpType.SET, "7"),
            AlterConfigOp("retention.ms", OpType.SET, "never"),
        )
    assert overrides(cluster) == {"retention.ms": "5"}


def test_validating_changes_nothing(cluster):
    epoch = cluster.image.epoch
    alter(cluster, TOPIC, AlterConfigOp("segment.ms", OpType.SET, "7"), validate_only=True)
    assert (overrides(cluster), cluster.image.epoch) == ({"retention.ms": "5"}, epoch)


@pytest.mark.parametrize(
    ("resource", "change", "error"),
    [
        (TOPIC, AlterConfigOp("retention.ms", OpType.APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, AlterConfigOp("bogus", OpType.SUBTRACT, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, AlterConfigOp("bogus", OpType.SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, AlterConfigOp("retention.ms", OpType.SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, AlterConfigOp("retention.ms", 7, "1"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (
            (2, "none"),
            AlterConfigOp("retention.ms", OpType.SET, "1"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        (
            (2, "a/b"),
            AlterConfigOp("retention.ms", OpType.SET, "1"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ),
        ((2, ""), AlterConfigOp("retention.ms", OpType.SET, "1"), ErrorCode.INVALID_REQUEST),
        ((4, "1"), AlterConfigOp("num.io.threads", 9, "1"), ErrorCode.INVALID_REQUEST),
        ((4, "2"), AlterConfigOp("num.io.threads", OpType.SET, "8"), ErrorCode.INVALID_REQUEST),
        ((4, "x"), AlterConfigOp("num.io.threads", OpType.SET, "8"), ErrorCode.INVALID_REQUEST),
        ((4, "1"), AlterConfigOp("bogus", OpType.APPEND, "8"), ErrorCode.INVALID_CONFIG),
        ((4, "1"), AlterConfigOp("num.io.threads", OpType.APPEND, "8"), ErrorCode.INVALID_CONFIG),
        ((4, "1"), AlterConfigOp("min.insync.replicas", OpType.SET, "2"), ErrorCode.INVALID_CONFIG),
        (
            (4, "1"),
            AlterConfigOp("min.insync.replicas", OpType.DELETE, None),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            (4, ""),
            AlterConfigOp("min.insync.replicas", OpType.DELETE, None),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            (32, ""),
            AlterConfigOp("share.isolation.level", OpType.DELETE, None),
            ErrorCode.INVALID_REQUEST,
        ),
        ((16, ""), AlterConfigOp("metrics", OpType.SET, ""), ErrorCode.INVALID_REQUEST),
        ((1, "x"), AlterConfigOp("a", OpType.SET, "1"), ErrorCode.INVALID_REQUEST),
        ((8, "2"), AlterConfigOp("root", OpType.SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ((8, ""), AlterConfigOp("root", OpType.SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ((8, "1"), AlterConfigOp("root", OpType.SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ((8, "1"), AlterConfigOp("root", OpType.DELETE, None), ErrorCode.INVALID_REQUEST),
        ((8, "1"), AlterConfigOp("root", OpType.APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ((8, "1"), AlterConfigOp("root", 9, "INFO"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (
            (4, "1"),
            AlterConfigOp("log.cleaner.threads", OpType.SET, "0"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            (4, "1"),
            AlterConfigOp("log.cleaner.threads", OpType.SET, "3"),
            ErrorCode.INVALID_REQUEST,
        ),
        ((8, "1"), AlterConfigOp("no.such", OpType.SET, "INFO"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_changes_that_are_refused(cluster, resource, change, error):
    with pytest.raises(ApiError) as refused:
        alter(cluster, resource, change)
    assert refused.value.error is error


def test_a_config_is_changed_once_in_a_request(cluster):
    with pytest.raises(ApiError) as refused:
        alter(cluster, TOPIC, *[AlterConfigOp("segment.ms", OpType.SET, "7")] * 2)
    assert refused.value.error is ErrorCode.INVALID_REQUEST


def test_a_brokers_own_config_and_that_of_all(cluster):
    alter(
        cluster,
        (ConfigResourceType.BROKER, ""),
        AlterConfigOp("log.retention.ms", OpType.SET, "70"),
    )
    alter(
        cluster,
        (ConfigResourceType.BROKER, "01"),
        AlterConfigOp("log.retention.ms", OpType.SET, "80"),
    )
    assert cluster.config("log.retention.ms") == 70
    assert cluster.configs.get_for(1, "log.retention.ms") == 80
    assert cluster.create_topic("u").configs.retention_ms == 70
    alter(
        cluster,
        (ConfigResourceType.BROKER, "1"),
        AlterConfigOp("log.retention.ms", OpType.DELETE, None),
    )
    assert cluster.configs.dynamic_broker == {}


def test_topics_follow_a_change_of_the_brokers_defaults(cluster):
    alter(
        cluster,
        (ConfigResourceType.BROKER, ""),
        AlterConfigOp("log.segment.bytes", OpType.SET, "2000000"),
    )
    assert cluster.topics["t"].configs.segment_bytes == 2_000_000


@pytest.mark.covers("S68")
@pytest.mark.parametrize(
    ("resource", "change", "cleared"),
    [
        (TOPIC, AlterConfigOp("min.insync.replicas", OpType.SET, "1"), "t"),
        (TOPIC, AlterConfigOp("min.insync.replicas", OpType.SET, "3"), "t"),
        (TOPIC, AlterConfigOp("min.insync.replicas", OpType.DELETE, None), "t"),
        (TOPIC, AlterConfigOp("min.insync.replicas", OpType.SET, "2"), ""),
        (TOPIC, AlterConfigOp("retention.ms", OpType.SET, "7"), ""),
        ((4, ""), AlterConfigOp("min.insync.replicas", OpType.SET, "2"), "tu"),
        ((4, ""), AlterConfigOp("min.insync.replicas", OpType.SET, "1"), "tu"),
        ((4, ""), AlterConfigOp("log.retention.ms", OpType.SET, "7"), ""),
    ],
)
def test_eligible_leaders_are_forgotten_when_their_minimum_is_written_anew(
    resource, change, cleared
):
    """Up or down: Kafka 4.3 clears them for a topic whose value changes, and for all topics when
    the default of the cluster is written, with the value that it has as well.
    """
    cluster = Cluster(seed=1)
    for name in "tu":
        configs = {"min.insync.replicas": "2"}
        (partition,) = cluster.create_topic(name, 1, 3, configs=configs).partitions
        partition.elr, partition.last_known_elr = (2,), (3,)
    epochs = {t.name: t.partitions[0].partition_epoch for t in cluster.topics.values()}
    alter(cluster, resource, change)
    for topic in cluster.topics.values():
        (partition,) = topic.partitions
        gone = topic.name in cleared
        assert (partition.elr, partition.last_known_elr) == (((), ()) if gone else ((2,), (3,)))
        assert partition.partition_epoch == epochs[topic.name] + gone


def test_replacing_drops_what_is_not_named(cluster):
    replace_overrides(cluster, cluster.brokers[1], TOPIC, {"segment.ms": "9"}, validate_only=False)
    assert overrides(cluster) == {"segment.ms": "9"}


def test_what_replacing_drops_may_be_the_minimum_of_the_eligible_leaders(cluster):
    topic = cluster.topics["t"]
    topic.configs.replace({"min.insync.replicas": "2"})
    topic.partitions[0].elr = (2,)
    replace_overrides(cluster, cluster.brokers[1], TOPIC, {}, validate_only=True)
    assert topic.partitions[0].elr == (2,)
    replace_overrides(cluster, cluster.brokers[1], TOPIC, {}, validate_only=False)
    assert topic.partitions[0].elr == ()


def test_groups_and_subscriptions_are_forgotten_with_their_last_override(cluster):
    for kind, name, value in (
        (ConfigResourceType.GROUP, "consumer.session.timeout.ms", "50000"),
        (ConfigResourceType.CLIENT_METRICS, "interval.ms", "60000"),
    ):
        alter(cluster, (kind, "x"), AlterConfigOp(name, OpType.SET, value))
        stores = cluster.configs.groups | cluster.configs.client_metrics
        assert stores == {"x": {name: value}}
        alter(cluster, (kind, "x"), AlterConfigOp(name, OpType.DELETE, None))
        assert cluster.configs.groups == cluster.configs.client_metrics == {}


def test_a_logger_takes_a_level_and_goes_back_to_the_roots(cluster):
    levels = cluster.brokers[1].logger_levels
    alter(
        cluster,
        (ConfigResourceType.BROKER_LOGGER, "1"),
        AlterConfigOp("kafka", OpType.SET, "DEBUG"),
    )
    assert levels["kafka"] == "DEBUG"
    assert cluster.brokers[2].logger_levels["kafka"] == "INFO"
    alter(
        cluster,
        (ConfigResourceType.BROKER_LOGGER, "1"),
        AlterConfigOp("kafka", OpType.DELETE, None),
    )
    assert levels["kafka"] == levels["root"]


@pytest.mark.parametrize("name", ["x", "1x", "²", "9" * 5_000])
def test_a_name_of_a_broker_that_is_no_int32_is_refused(cluster, name):
    with pytest.raises(ApiError, match="Node id must be an integer"):
        alter(
            cluster,
            (ConfigResourceType.BROKER, name),
            AlterConfigOp("log.retention.ms", OpType.SET, "9"),
        )
