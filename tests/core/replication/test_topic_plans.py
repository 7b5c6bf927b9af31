"""The controller's refusals of new topics and partitions, in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.replication.topic_plans import check_replicas, plan_more_partitions, plan_topic
from mockbroker_protocol import ErrorCode


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(seed=3)
    cluster.create_topic("there")
    cluster.create_topic("a.b")
    return cluster


def error_of(call: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call()
    assert refused.value.message
    return refused.value.error


def plan(cluster: Cluster, name: str = "new", partitions: int = 1, factor: int = 1, **more: Any):
    return plan_topic(
        cluster.replication_control, name, partitions, factor, **{"configs": {}, **more}
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "a_b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "there"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "__cluster_metadata"}, ErrorCode.INVALID_REQUEST),
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"factor": -2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": {"bogus": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"retention.ms": "never"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"": None}}, ErrorCode.INVALID_CONFIG),
        ({"assignments": {0: [1]}}, ErrorCode.INVALID_REQUEST),
        ({"assignments": {0: [1]}, "factor": -1}, ErrorCode.INVALID_REQUEST),
        ({"assignments": {0: [1]}, "partitions": -1}, ErrorCode.INVALID_REQUEST),
        # two faults: the one that Kafka finds first
        ({"name": "there", "configs": {"bogus": "1"}}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"factor": 9, "configs": {"bogus": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"partitions": 0, "factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"partitions": 0, "factor": 9}, ErrorCode.INVALID_PARTITIONS),
    ],
)
def test_an_invalid_topic_is_refused(cluster, fields, error):
    assert error_of(lambda: plan(cluster, **fields)) is error


@pytest.mark.parametrize(
    "assignments",
    [
        {1: [1]},
        {0: [1], 2: [1]},
        {0: []},
        {0: [1, 1]},
        {0: [9]},
        {0: [1, 2], 1: [1]},
        [(0, [1]), (0, [2])],
    ],
)
def test_an_invalid_assignment_is_refused(cluster, assignments):
    asked = {"partitions": -1, "factor": -1, "assignments": assignments}
    assert error_of(lambda: plan(cluster, **asked)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_minus_one_stands_for_the_brokers_defaults():
    cluster = Cluster(configs={"num.partitions": "4", "default.replication.factor": "2"})
    plans = plan(cluster, partitions=-1, factor=-1)
    assert [len(replicas) for replicas, _ in plans] == [2, 2, 2, 2]


def test_only_live_replicas_are_in_sync_and_one_must_be(cluster):
    cluster.brokers[2].fenced = True
    asked = {"partitions": -1, "factor": -1}
    assert plan(cluster, **asked, assignments={0: [2, 3]}) == [([2, 3], [3])]
    unsound = {**asked, "assignments": {0: [2]}}
    assert error_of(lambda: plan(cluster, **unsound)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    ((replicas, isr),) = plan(cluster, factor=3)
    assert isr == replicas[:2]
    assert replicas[2] == 2


def test_a_broker_in_controlled_shutdown_is_not_in_sync_in_a_new_partition(cluster):
    cluster.brokers[2].shutting_down = True
    asked = {"partitions": -1, "factor": -1}
    assert plan(cluster, **asked, assignments={0: [2, 3]}) == [([2, 3], [3])]
    ((replicas, isr),) = plan(cluster, factor=3)
    assert sorted(replicas) == [1, 2, 3]
    assert 2 not in isr
    for broker in cluster.brokers.values():
        broker.shutting_down = True
    refused = error_of(lambda: plan(cluster, factor=3))
    assert refused is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("count", "assignments", "error"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (-1, None, ErrorCode.INVALID_PARTITIONS),
        (4, [[1, 2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(cluster, count, assignments, error):
    topic = cluster.create_topic("t", 2, 2)
    call = lambda: plan_more_partitions(cluster.replication_control, topic, count, assignments)  # noqa: E731
    assert error_of(call) is error


def test_more_partitions_have_as_many_replicas_as_the_others(cluster):
    topic = cluster.create_topic("t", 2, 2)
    assert [
        len(replicas)
        for replicas, _ in plan_more_partitions(cluster.replication_control, topic, 5, None)
    ] == [2] * 3
    assert plan_more_partitions(cluster.replication_control, topic, 3, [[3, 1]]) == [
        ([3, 1], [3, 1])
    ]


def test_replicas_alone_are_checked_without_a_factor(cluster):
    check_replicas(cluster.replication_control, [3, 1], None)
    assert (
        error_of(lambda: check_replicas(cluster.replication_control, [3], 2))
        is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    )
