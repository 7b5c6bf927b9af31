"""Leaders and ISRs of partitions, and the consequences of their changes."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.alter import AlterConfigOp, OpType, alter_incrementally
from mockbroker.core.errors import ApiError
from mockbroker.core.events import (
    FollowerFetched,
    IsrChanged,
    LeaderChanged,
    RecordsRemoved,
    ReplicasMoved,
)
from mockbroker.core.replication.elections import (
    Election,
    PartitionChange,
    elect_preferred_leader,
    elect_unclean_leader,
)
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker_protocol import ErrorCode
from tests.support.replicas import Replicas


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(seed=1)


@pytest.fixture
def partition(cluster: Cluster) -> Partition:
    """Replicas 1, 2, 3; 2 leads."""
    (partition,) = cluster.create_topic("t", assignments={0: [1, 2, 3]}).partitions
    partition.become_leader(2, 1, [1, 2, 3])
    return partition


def change(
    *,
    replicas: list[int],
    isr: list[int],
    leader: int,
    dead: tuple[int, ...] = (),
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    target_isr: list[int] | None = None,
    election: Election = Election.ONLINE,
    min_isr: int = 1,
    version: str = "4.3",
    unclean_shutdown: int = -1,
) -> Partition:
    """A partition in epoch 5, after a change that some brokers being dead has caused."""
    cluster = Cluster(seed=1, kafka_version=version)
    configs = {"min.insync.replicas": str(min_isr)}
    topic = cluster.create_topic("t", assignments={0: replicas}, configs=configs)
    (partition,) = topic.partitions
    partition.become_leader(leader, 5, isr)
    partition.elr, partition.last_known_elr = elr, last_known
    for node_id in dead:
        cluster.brokers[node_id].fenced = True
    step = PartitionChange(cluster.replication_control, partition)
    step.isr = [n for n in isr if n not in dead] if target_isr is None else target_isr
    step.election = election
    step.unclean_shutdown = unclean_shutdown
    step.apply("test")
    return partition


def state(partition: Partition) -> tuple[int, int, list[int]]:
    return partition.leader_id, partition.leader_epoch, partition.isr


# -- electing --------------------------------------------------------------------------------------


@pytest.mark.covers("S59", "S89")
@pytest.mark.parametrize(
    ("replicas", "isr", "leader", "dead", "after"),
    [
        # The first live one in the order of the replicas, whatever the order of the ISR is.
        ([3, 2, 1], [3, 2, 1], 3, (3,), (2, 6, [2, 1])),
        ([1, 2, 3], [3, 2], 1, (1,), (2, 6, [3, 2])),
        ([1, 2, 3], [3, 2], 3, (3,), (2, 6, [2])),
        # A follower that dies changes the ISR and no epoch.
        ([1, 2, 3], [1, 2, 3], 2, (3,), (2, 5, [1, 2])),
        # Who is not in sync does not lead.
        ([1, 2, 3], [3], 3, (3,), (NO_LEADER, 6, [])),
        # The present leader stays, although another one is preferred.
        ([1, 2, 3], [1, 2, 3], 3, (), (3, 5, [1, 2, 3])),
    ],
)
def test_the_next_leader_is_the_first_live_replica_in_sync(replicas, isr, leader, dead, after):
    """Every change of the leader raises its epoch by one, the loss of it as well."""
    partition = change(replicas=replicas, isr=isr, leader=leader, dead=dead)
    assert state(partition) == after


@pytest.mark.covers("S68")
def test_a_leaderless_partition_remembers_who_may_lead_it():
    """The ISR is empty; the last leader is eligible, and known as the last one (KIP-966)."""
    partition = change(replicas=[1, 2, 3], isr=[2], leader=2, dead=(2,))
    assert state(partition) == (NO_LEADER, 6, [])
    assert (partition.elr, partition.last_known_elr) == ((2,), (2,))


@pytest.mark.covers("S61", "S68")
def test_without_eligible_leaders_the_last_one_stays_in_the_isr():
    """Releases before 4.1 never let an ISR become empty."""
    partition = change(replicas=[1, 2, 3], isr=[3], leader=3, dead=(3,), version="3.9")
    assert state(partition) == (NO_LEADER, 6, [3])
    assert (partition.elr, partition.last_known_elr) == ((), ())


def test_a_replica_that_leaves_an_isr_below_the_minimum_stays_eligible():
    """They hold all that was acknowledged, for the high watermark stands still meanwhile."""
    partition = change(replicas=[1, 2, 3], isr=[1, 2], leader=1, dead=(2,), elr=(), min_isr=2)
    assert (state(partition), partition.elr) == ((1, 5, [1]), (2,))
    partition = change(replicas=[1, 2, 3], isr=[1], leader=1, dead=(1,), elr=(2,), min_isr=2)
    assert (state(partition), partition.elr) == ((2, 6, [2]), (1,))


def test_an_isr_of_the_minimum_size_needs_no_eligible_leaders():
    partition = change(
        replicas=[1, 2, 3], isr=[1], leader=1, elr=(2, 3), target_isr=[1, 2], min_isr=2
    )
    assert (state(partition), partition.elr) == ((1, 5, [1, 2]), ())


def test_an_eligible_leader_leads_cleanly():
    partition = change(
        replicas=[1, 2, 3], isr=[], leader=NO_LEADER, dead=(1,), elr=(1, 2), min_isr=2
    )
    assert (state(partition), partition.elr) == ((2, 6, [2]), (1,))


@pytest.mark.covers("S68")
@pytest.mark.parametrize("resource", [(2, "t"), (4, "")], ids=["topic", "cluster"])
def test_records_acknowledged_under_a_lower_minimum_are_not_lost(resource):
    """Replica 2 held all that was acknowledged as long as two had to; it does not lead without the
    record that 1 alone acknowledged.
    """
    in_topic = {"min_insync_replicas": "2"} if resource[1] else {}
    node = Replicas(configs={"min.insync.replicas": "1" if in_topic else "2"}, **in_topic)
    cluster, partition = node.cluster, node.partition
    cluster.stop_broker(3)
    cluster.stop_broker(2)
    assert (partition.isr, partition.elr) == ([1], (2,))
    lower = AlterConfigOp("min.insync.replicas", OpType.SET, "1")
    alter_incrementally(cluster, cluster.brokers[1], resource, [lower], validate_only=False)
    assert node.sent("one").error_code == 0
    cluster.stop_broker(1)
    cluster.start_broker(2)
    cluster.start_broker(3)
    node.settle()
    assert partition.leader_id == NO_LEADER
    cluster.start_broker(1)
    node.settle()
    assert (partition.leader_id, node.read()) == (1, "one")


def test_after_an_unclean_shutdown_a_broker_is_not_eligible_any_more():
    partition = change(
        replicas=[1, 2, 3],
        isr=[],
        leader=NO_LEADER,
        dead=(1, 3),
        elr=(1, 2),
        min_isr=2,
        unclean_shutdown=2,
    )
    assert (state(partition), partition.elr) == ((NO_LEADER, 5, []), (1,))


def test_the_last_known_leader_leads_again_without_an_eligible_replica():
    """A single survivor, even after a crash, has at least as much as all the others."""
    partition = change(replicas=[1, 2, 3], isr=[], leader=NO_LEADER, last_known=(3,))
    assert (state(partition), partition.last_known_elr) == ((3, 6, [3]), ())
    partition = change(replicas=[1, 2, 3], isr=[], leader=NO_LEADER, last_known=(3,), dead=(3,))
    assert state(partition) == (NO_LEADER, 5, [])


@pytest.mark.covers("S69")
@pytest.mark.parametrize(
    ("isr", "dead", "after"),
    [([3], (), (3, 6, [3])), ([3], (3,), (1, 6, [1])), ([], (1,), (2, 6, [2]))],
)
def test_an_unclean_election_prefers_replicas_in_sync(isr, dead, after):
    partition = change(
        replicas=[1, 2, 3],
        isr=isr,
        leader=NO_LEADER,
        dead=dead,
        election=Election.UNCLEAN,
        version="3.9",
    )
    assert state(partition) == after


def test_releases_before_3_6_raise_the_epoch_when_the_isr_shrinks():
    old = change(replicas=[1, 2, 3], isr=[1, 2, 3], leader=2, dead=(3,), version="3.5")
    new = change(replicas=[1, 2, 3], isr=[1, 2, 3], leader=2, dead=(3,), version="3.6")
    assert (state(old), state(new)) == ((2, 6, [1, 2]), (2, 5, [1, 2]))


def test_a_broker_that_lost_the_partitions_directory_does_not_lead_it(cluster, partition):
    two = cluster.brokers[2]
    two.log_dirs.failed.add(two.log_dirs.dir_of(partition))
    step = PartitionChange(cluster.replication_control, partition)
    step.isr.remove(2)
    step.apply("directory failed")
    assert state(partition) == (1, 2, [1, 3])


def test_a_change_without_an_effect_is_no_event(cluster, partition):
    heard: list[object] = []
    cluster.runtime.on_event.append(heard.append)
    epoch = cluster.image.epoch
    assert not PartitionChange(cluster.replication_control, partition).apply("nothing")
    assert (heard, cluster.image.epoch, partition.partition_epoch) == ([], epoch, 0)


def test_changes_are_events(cluster, partition):
    heard: list[object] = []
    cluster.runtime.on_event.append(heard.append)
    cluster.brokers[2].fenced = True
    step = PartitionChange(cluster.replication_control, partition)
    step.isr.remove(2)
    step.apply("fenced")
    assert [each for each in heard if not isinstance(each, ReplicasMoved | FollowerFetched)] == [
        LeaderChanged(0, "t", 0, 1, 2, 2, (1, 3), False, "fenced"),
        IsrChanged(0, "t", 0, (1, 2, 3), (1, 3), 0, 0, "fenced"),
    ]
    assert partition.partition_epoch == 1


# -- elections that someone asks for ---------------------------------------------------------------


@pytest.mark.covers("S308", "S49", "S64")
def test_the_preferred_leader_comes_back_under_the_next_epoch(cluster, partition):
    epoch = cluster.image.epoch
    elect_preferred_leader(cluster.replication_control, "t", 0)
    assert state(partition) == (1, 2, [1, 2, 3])
    assert cluster.image.epoch > epoch
    with pytest.raises(ApiError) as refused:
        elect_preferred_leader(cluster.replication_control, "t", 0)
    assert refused.value.error is ErrorCode.ELECTION_NOT_NEEDED


@pytest.mark.covers("S65")
def test_a_preferred_leader_must_be_in_sync(cluster, partition):
    partition.set_isr([2, 3])
    with pytest.raises(ApiError) as refused:
        elect_preferred_leader(cluster.replication_control, "t", 0)
    assert refused.value.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert partition.leader_id == 2
    partition.set_isr([2, 3, 1])
    elect_preferred_leader(cluster.replication_control, "t", 0)
    assert partition.leader_id == 1


def test_a_preferred_leader_must_be_alive(cluster, partition):
    cluster.stop_broker(1)
    with pytest.raises(ApiError) as refused:
        elect_preferred_leader(cluster.replication_control, "t", 0)
    assert refused.value.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def test_an_unclean_election_is_for_leaderless_partitions(cluster, partition):
    with pytest.raises(ApiError) as refused:
        elect_unclean_leader(cluster.replication_control, "t", 0)
    assert refused.value.error is ErrorCode.ELECTION_NOT_NEEDED
    partition.become_leader(NO_LEADER, 2, [])
    elect_unclean_leader(cluster.replication_control, "t", 0)
    assert state(partition)[:2] == (1, 3)


def test_without_a_live_replica_nobody_can_lead(cluster, partition):
    for broker in cluster.brokers.values():
        broker.fenced = True
    partition.become_leader(NO_LEADER, 2, [])
    with pytest.raises(ApiError) as refused:
        elect_unclean_leader(cluster.replication_control, "t", 0)
    assert refused.value.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


@pytest.mark.parametrize(("topic", "index"), [("none", 0), ("t", 9)])
def test_unknown_partitions_have_no_elections(cluster, partition, topic, index):
    for elect in (elect_preferred_leader, elect_unclean_leader):
        with pytest.raises(ApiError) as refused:
            elect(cluster, topic, index)
        assert refused.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- records that a new leader lacks ---------------------------------------------------------------


def losses(node: Replicas) -> list[tuple[int, int, str]]:
    """(first offset, last offset, reason) of the records that elections have cost, so far."""
    lost = [each for each in node.events if isinstance(each, RecordsRemoved)]
    return [(each.first_offset, each.last_offset, each.reason) for each in lost]


def test_records_that_only_a_failed_directory_had_are_lost_with_it():
    node = Replicas(2, configs={"log.dirs": "/a,/b"})
    node.sent("a")
    node.hold(2)
    node.send("b", acks=1)
    node.cluster.fail_log_dir(1, node.cluster.brokers[1].log_dirs.dir_of(node.partition))
    assert (node.partition.leader_id, losses(node)) == (2, [(1, 1, "log_dir_failed")])


def test_a_loss_has_the_reason_of_its_own_election_not_of_an_earlier_one():
    node = Replicas()
    node.sent("a")
    node.cluster.shrink_isr("t", 0, nodes=[3])
    node.sent("b")
    node.cluster.elect_unclean("t", 0, 3)
    assert losses(node) == [(1, 1, "unclean_election")]
    node.release(3)
    node.settle()
    node.hold(1)
    node.send("c", acks=1)
    node.cluster.move_leader("t", 0, 1)
    assert losses(node)[1:] == [(1, 1, "truncation")]
