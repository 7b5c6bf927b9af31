"""The controller's state besides the image: names, reassignments and former epochs."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.replication.replication_control import NOT_REASSIGNED, Reassignment


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


def test_names_that_differ_in_dots_and_underscores_collide_until_one_is_deleted(cluster):
    cluster.create_topic("a.b_c")
    control = cluster.replication_control
    assert control.colliding_topic("a_b.c") == "a.b_c"
    assert control.colliding_topic("a_b") is None
    assert control.colliding_topic("abc") is None
    cluster.delete_topic("a.b_c")
    assert control.colliding_topic("a_b.c") is None


def test_a_deletion_ends_reassignments_and_keeps_the_highest_leader_epoch(cluster):
    control = cluster.replication_control
    topic = cluster.create_topic("t", assignments={0: [1, 2], 1: [2, 3]})
    moved, other = topic.partitions
    cluster.stop_broker(1)
    control.reassignments[moved.key] = Reassignment([3], [1])
    assert control.reassignment_of(moved).adding == [3]
    assert control.reassignment_of(other) is NOT_REASSIGNED
    epoch = moved.leader_epoch
    cluster.delete_topic("t")
    assert control.reassignments == {}
    assert control.deleted_epoch == epoch > 0


@pytest.mark.parametrize(("release", "enabled"), [("4.3", True), ("4.0", False)])
def test_eligible_leaders_are_kept_where_the_feature_is_on(release, enabled):
    assert Cluster(kafka_version=release).replication_control.elr_enabled is enabled
