"""What is checked before configs change: values, and what must fit together."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.control import (
    check_broker_configs,
    check_client_metrics_configs,
    check_group_configs,
    check_min_isr_stays,
    check_topic_configs,
)
from mockbroker.core.errors import ApiError
from mockbroker_protocol import ErrorCode


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


@pytest.mark.parametrize(
    "overrides",
    [
        {"bogus": "1"},
        {"retention.ms": "x"},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        {"max.compaction.lag.ms": "5", "min.compaction.lag.ms": "6"},
        {"remote.storage.enable": "true"},
        {"message.format.version": "2.8"},
    ],
)
def test_topic_configs_that_do_not_fit_are_invalid(cluster, overrides):
    with pytest.raises(ApiError) as refused:
        check_topic_configs(cluster.configs, overrides)
    assert refused.value.error is ErrorCode.INVALID_CONFIG


def test_a_topics_lag_is_held_against_the_brokers():
    cluster = Cluster(configs={"log.cleaner.min.compaction.lag.ms": "100"})
    check_topic_configs(cluster.configs, {"max.compaction.lag.ms": "100"})
    with pytest.raises(ApiError):
        check_topic_configs(cluster.configs, {"max.compaction.lag.ms": "99"})


def test_sound_topic_configs_pass():
    tiered = Cluster(configs={"remote.log.storage.system.enable": "true"})
    check_topic_configs(tiered.configs, {"remote.storage.enable": "true", "cleanup.policy": ""})


@pytest.mark.parametrize(
    "overrides",
    [
        {"bogus": "1"},
        {"consumer.session.timeout.ms": "1"},
        {"consumer.session.timeout.ms": "60001"},
        {"consumer.heartbeat.interval.ms": "4999"},
        {"consumer.assignment.interval.ms": "15001"},
        {"share.delivery.count.limit": "11"},
        {"share.partition.max.record.locks": "4001"},
        {"share.record.lock.duration.ms": "14999"},
        {"streams.num.standby.replicas": "3"},
        {"streams.session.timeout.ms": "soon"},
    ],
)
def test_group_configs_outside_the_brokers_bounds_are_invalid(cluster, overrides):
    with pytest.raises(ApiError) as refused:
        check_group_configs(cluster.configs, overrides)
    assert refused.value.error is ErrorCode.INVALID_CONFIG


def test_a_session_outlasts_a_heartbeat():
    cluster = Cluster(
        configs={
            "group.consumer.min.session.timeout.ms": "10",
            "group.consumer.min.heartbeat.interval.ms": "10",
        }
    )
    check_group_configs(
        cluster.configs,
        {"consumer.session.timeout.ms": "11", "consumer.heartbeat.interval.ms": "10"},
    )
    with pytest.raises(ApiError):
        check_group_configs(cluster.configs, {"consumer.session.timeout.ms": "5000"})


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"bogus": "1"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "x"}, ErrorCode.INVALID_CONFIG),
        ({"match": "bogus=1"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=("}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_client_metrics_configs_that_make_no_sense_are_refused(overrides, error):
    with pytest.raises(ApiError) as refused:
        check_client_metrics_configs(overrides)
    assert refused.value.error is error


def test_a_sound_subscription_passes():
    check_client_metrics_configs(
        {"interval.ms": "100", "metrics": "a,b", "match": "client_id=x.*,client_software_name=y"}
    )


@pytest.mark.covers("S303")
@pytest.mark.parametrize(
    ("overrides", "node_id"),
    [
        ({"auto.create.topics.enable": "false"}, 1),
        ({"log.retention.hours": "1"}, None),
        ({"ssl.keystore.location": "/x"}, 1),
        ({"listeners": "A://:1"}, None),
        ({"listener.name.a.ssl.keystore.location": "/x"}, None),
        ({"num.io.threads": "abc"}, 1),
        ({"num.io.threads": "0"}, 1),
        ({"num.io.threads": "17"}, 1),
        ({"num.io.threads": "3"}, None),
    ],
)
def test_what_a_running_broker_does_not_take_is_an_invalid_request(cluster, overrides, node_id):
    with pytest.raises(ApiError) as refused:
        check_broker_configs(cluster.replication_control, overrides, node_id)
    assert refused.value.error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("overrides", "node_id"),
    [
        ({"num.io.threads": "16"}, 1),
        ({"num.io.threads": "4"}, None),
        ({"log.retention.ms": "5"}, None),
        ({"listeners": "A://:1"}, 1),
        ({"for.a.plugin": "x"}, None),
    ],
)
def test_what_may_change_while_a_broker_runs_passes(cluster, overrides, node_id):
    check_broker_configs(cluster.replication_control, overrides, node_id)


def test_min_insync_replicas_stays_one_value_for_all_brokers(cluster):
    """One broker's is not even deleted where it is not set, as Kafka 4.3 has it."""
    one, two = {"min.insync.replicas": "1"}, {"min.insync.replicas": "2"}
    named, other = "min.insync.replicas", "log.retention.ms"
    check_min_isr_stays(cluster.replication_control, one, two, [named], None)
    check_min_isr_stays(cluster.replication_control, {}, {}, [other], 1)
    check_min_isr_stays(cluster.replication_control, one, one, [other], 1)
    for before, after, written, node_id in (
        (one, {}, [named], None),
        (one, {}, [other], None),
        ({}, two, [named], 1),
        ({}, {}, [named], 1),
        (one, {}, [other], 1),
    ):
        with pytest.raises(ApiError) as refused:
            check_min_isr_stays(cluster.replication_control, before, after, written, node_id)
        assert refused.value.error is ErrorCode.INVALID_CONFIG
    check_min_isr_stays(Cluster(kafka_version="4.0").replication_control, {}, two, [named], 1)
