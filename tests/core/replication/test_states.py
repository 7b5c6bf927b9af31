"""The states of partitions and replicas: each transition exists in Kafka's state machines."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.events import PartitionsMoved, ReplicasMoved, TopicsChanged
from mockbroker.core.replication.reassignment import reassign
from mockbroker.core.replication.states import (
    PARTITION_ENTERED_FROM,
    REPLICA_ENTERED_FROM,
    PartitionState,
    ReplicaState,
)

CREATION_MS = 5


class World:
    """A cluster of brokers 1, 2 and 3 whose clock is moved by hand, and all that was told."""

    def __init__(self, creation_ms: int = 0) -> None:
        self.now_ms = 0
        configs = {"mockbroker.partition.creation.ms": str(creation_ms)}
        self.cluster = Cluster(now_ms=lambda: self.now_ms, configs=configs, seed=1)
        self.told: list[object] = []
        self.cluster.runtime.on_event.append(self.told.append)

    def advance(self, by_ms: int) -> None:
        self.now_ms += by_ms
        self.cluster.runtime.timers.run_due(self.now_ms)

    def create(self, name: str = "t", *replicas: int) -> None:
        self.cluster.create_topic(name, assignments={0: list(replicas or (1, 2))})

    def partitions(self) -> list[str]:
        return [each.state for each in self.told if isinstance(each, PartitionsMoved)]

    def replica(self, node_id: int) -> list[str]:
        """The states that a broker's replica went through, the first one it left included."""
        moved = [e for e in self.told if isinstance(e, ReplicasMoved) and e.node_id == node_id]
        return [each.former for each in moved[:1]] + [each.state for each in moved]


def test_a_partition_is_new_until_it_has_its_first_leader():
    world = World(CREATION_MS)
    world.create()
    assert world.partitions() == ["NewPartition"]
    assert world.cluster.partition("t", 0).leader_id == -1
    world.advance(CREATION_MS)
    assert world.partitions() == ["NewPartition", "OnlinePartition"]
    assert world.replica(1) == ["NonExistentReplica", "NewReplica", "OnlineReplica"]
    partition = world.cluster.partition("t", 0)
    assert (partition.leader_id, partition.leader_epoch, partition.isr) == (1, 0, [1, 2])


def test_without_a_delay_all_transitions_are_immediate():
    world = World()
    world.cluster.create_topic("t", 100, 3)
    assert world.partitions() == ["NewPartition", "OnlinePartition"]
    assert world.replica(3) == ["NonExistentReplica", "NewReplica", "OnlineReplica"]
    assert len(world.told) == 9  # whatever the number of partitions


def test_a_topic_that_is_deleted_before_it_has_leaders_gets_none():
    world = World(CREATION_MS)
    world.create()
    world.cluster.delete_topic("t")
    world.advance(CREATION_MS)
    assert world.partitions() == ["NewPartition", "OfflinePartition", "NonExistentPartition"]


def test_a_partition_without_a_leader_is_offline_and_so_are_the_replicas_of_the_dead():
    world = World()
    world.create()
    for node_id in (2, 1):
        world.cluster.stop_broker(node_id, "unclean")
    assert world.partitions()[-1] == "OfflinePartition"
    assert world.replica(2)[-1] == "OfflineReplica"
    world.cluster.start_broker(1)
    assert world.partitions()[-1] == "OnlinePartition"
    assert world.replica(1)[-2:] == ["OfflineReplica", "OnlineReplica"]


def test_a_deleted_replica_goes_through_the_steps_of_its_deletion():
    world = World()
    world.create()
    world.told.clear()
    world.cluster.delete_topic("t")
    assert world.replica(1) == [
        "OnlineReplica",
        "OfflineReplica",
        "ReplicaDeletionStarted",
        "ReplicaDeletionSuccessful",
        "NonExistentReplica",
    ]


def test_a_reassignment_makes_new_replicas_and_deletes_old_ones():
    world = World()
    world.create("t", 1, 2)
    world.told.clear()
    reassign(world.cluster.replication_control, "t", 0, [3, 1], may_change_factor=True)
    world.advance(1_000)
    assert world.replica(3) == ["NonExistentReplica", "NewReplica", "OnlineReplica"]
    assert world.replica(2)[-1] == "NonExistentReplica"
    assert world.partitions() == []  # it was online all the while


def test_a_new_replica_whose_broker_comes_back_is_online():
    """As with Kafka's controller, whether it has caught up is another matter."""
    world = World()
    world.create("t", 1, 2)
    world.cluster.stop_broker(3, "unclean")
    reassign(world.cluster.replication_control, "t", 0, [1, 3], may_change_factor=True)
    world.cluster.start_broker(3)
    expected = ["NonExistentReplica", "NewReplica", "OfflineReplica", "OnlineReplica"]
    assert world.replica(3) == expected


def test_a_lost_directory_takes_its_replicas_offline():
    world = World()
    world.create("t", 1, 2)
    broker = world.cluster.brokers[2]
    world.cluster.fail_log_dir(2, broker.log_dirs.paths[0])
    assert world.replica(2)[-1] == "OfflineReplica"


@pytest.mark.covers("S38")
def test_topics_that_are_created_and_deleted_together_are_one_event():
    world = World()
    world.create("gone")
    world.advance(1)
    world.told.clear()
    with world.cluster.states.one_event():
        world.create("a", 2, 3)
        world.create("b", 1)
        world.cluster.delete_topic("gone")
    [changed] = [each for each in world.told if isinstance(each, TopicsChanged)]
    created = [(each.topic, each.assignment) for each in changed.created]
    assert created == [("a", ((2, 3),)), ("b", ((1,),))]
    assert [each.topic for each in changed.deleted] == ["gone"]


def test_each_state_but_the_last_can_be_left():
    for table in (PARTITION_ENTERED_FROM, REPLICA_ENTERED_FROM):
        assert set(table) == set(next(iter(table)).__class__)
        assert set().union(*table.values()) == set(table)


STEPS = st.lists(
    st.sampled_from(["create", "delete", "stop", "kill", "start", "move", "grow", "wait"]),
    max_size=25,
)


@given(STEPS, st.randoms(use_true_random=False), st.sampled_from([0, CREATION_MS]))
def test_each_transition_begins_with_the_state_of_the_last_one(steps, draw, creation_ms):
    """Of every partition and replica, by the tables; and in the end nothing is remembered."""
    world = World(creation_ms)
    cluster = world.cluster
    for step in steps:
        try:
            act(world, step, draw)
        except (ActionError, ApiError):
            world.advance(1)
    at: dict[object, str] = {}
    for event in world.told:
        if not isinstance(event, PartitionsMoved | ReplicasMoved):
            continue
        is_replica = isinstance(event, ReplicasMoved)
        for index in event.partitions:
            key = (event.topic, index, event.node_id if is_replica else None)
            first = ReplicaState.NON_EXISTENT if is_replica else PartitionState.NON_EXISTENT
            assert at.get(key, first.value) == event.former
            at[key] = event.state
    states = Counter(at.values())
    partitions = [each for topic in cluster.topics.values() for each in topic.partitions]
    leaderless = sum(each.leader_id < 0 for each in partitions)
    assert states["NewPartition"] + states["OfflinePartition"] == leaderless
    assert states["OnlinePartition"] == len(partitions) - leaderless
    for name in list(cluster.topics):
        cluster.delete_topic(name)
    assert (cluster.states._partitions, cluster.states._replicas) == ({}, {})


def act(world: World, step: str, draw) -> None:
    cluster, node_id = world.cluster, draw.choice((1, 2, 3))
    name = draw.choice("ab")
    if step == "create":
        world.create(name, *draw.sample((1, 2, 3), 2))
    elif step == "delete":
        cluster.delete_topic(name)
    elif step in ("stop", "kill"):
        cluster.stop_broker(node_id, "controlled" if step == "stop" else "unclean")
    elif step == "start":
        cluster.start_broker(node_id)
    elif step == "move":
        reassign(
            cluster.replication_control, name, 0, draw.sample((1, 2, 3), 2), may_change_factor=True
        )
    elif step == "grow" and name in cluster.topics:
        cluster.topic_control.add_partitions(
            cluster.topics[name], len(cluster.topics[name].partitions) + 1
        )
    else:
        world.advance(10)
