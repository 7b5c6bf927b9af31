"""The states of partitions and replicas, under the names of Kafka's ZooKeeper controller.

Up to Kafka 3.9 a controller with ZooKeeper kept two state machines, and tools and logs still use
their states. A partition is new until its first leader, then online, and offline while it has no
leader. A replica is new, online or offline, and goes through the steps of its deletion. A KRaft
controller has the same information without these names.

These states decide nothing. They follow from leaders, ISRs and brokers. Most partitions are online,
so only other states are stored.

Source: PartitionStateMachine, ReplicaStateMachine (their `validPreviousStates`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from mockbroker.core.events import (
    BrokerChanged,
    ChangedTopic,
    ControllerChanged,
    Event,
    IsrChanged,
    LeaderChanged,
    LogDirFailed,
    PartitionsMoved,
    ReplicasChanged,
    ReplicasMoved,
    TopicsChanged,
)
from mockbroker.core.ids import uuid_text
from mockbroker.core.log.leader_epoch_cache import NO_EPOCH
from mockbroker.core.replication.partition import NO_LEADER, Partition, PartitionKey

if TYPE_CHECKING:
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.replication_control import ReplicationControl

HISTORY_MAX = 10_000


class PartitionState(Enum):
    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(Enum):
    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"


# State -> the states from which it is entered.
PARTITION_ENTERED_FROM: Mapping[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset({PartitionState.NEW, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE}),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}
REPLICA_ENTERED_FROM: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: frozenset({ReplicaState.NEW, ReplicaState.OFFLINE}),
    ReplicaState.OFFLINE: frozenset({ReplicaState.NEW, ReplicaState.ONLINE}),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
# The steps of a replica's deletion.
_DELETION = (
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)
# The changes of a broker that change the states of its replicas.
_LIVENESS_CHANGES = ("fenced", "unfenced", "unregistered")
_FOLLOWED = frozenset(
    (
        BrokerChanged,
        ControllerChanged,
        IsrChanged,
        LeaderChanged,
        LogDirFailed,
        PartitionsMoved,
        ReplicasChanged,
        ReplicasMoved,
        TopicsChanged,
    )
)

K = TypeVar("K")
S = TypeVar("S")


def partition_state(partition: Partition) -> PartitionState:
    """The state of a partition by its leader."""
    if partition.leader_id != NO_LEADER:
        return PartitionState.ONLINE
    return PartitionState.NEW if partition.leader_epoch == NO_EPOCH else PartitionState.OFFLINE


def replica_state(control: ReplicationControl, partition: Partition, node_id: int) -> ReplicaState:
    """The state of a replica by its broker, its directory, and the ISR."""
    broker = control.image.brokers.get(node_id)
    if broker is None or broker.fenced or not broker.log_dirs.is_online(partition):
        return ReplicaState.OFFLINE
    if partition_state(partition) is PartitionState.NEW:
        return ReplicaState.NEW
    moving = control.reassignments.get(partition.key)
    if moving is not None and node_id in moving.adding and node_id not in partition.isr:
        return ReplicaState.NEW
    return ReplicaState.ONLINE


class StateChangeLog:
    """Emits every transition of partitions and replicas, and keeps the last ones.

    `history` holds at most HISTORY_MAX events, oldest first: these transitions and changes of the
    controller.
    """

    def __init__(self, control: ReplicationControl) -> None:
        self.history: deque[Event] = deque(maxlen=HISTORY_MAX)
        self._control = control
        # The last emitted states other than online.
        self._partitions: dict[PartitionKey, PartitionState] = {}
        self._replicas: dict[tuple[PartitionKey, int], ReplicaState] = {}
        # Created and deleted topics that are in no event yet.
        self._created: list[Topic] = []
        self._deleted: list[Topic] = []
        self._nesting = 0
        control.metadata.on_topic_created.append(self._topic_created)
        control.metadata.on_topic_deleted.append(self._topic_deleted)

    # -- topics ------------------------------------------------------------------------------------

    @contextmanager
    def one_event(self) -> Iterator[None]:
        """Combine changes of topics in this block into one event at its end. The transitions of
        their partitions and replicas follow it.
        """
        self._nesting += 1
        try:
            yield
        finally:
            self._nesting -= 1
            if not self._nesting and (self._created or self._deleted):
                self._emit_topics()

    def _topic_created(self, topic: Topic) -> None:
        with self.one_event():
            self._created.append(topic)

    def partitions_created(self, partitions: Iterable[Partition]) -> None:
        """Emit the transitions of new partitions, which may have no leader yet."""
        partitions = list(partitions)
        by_broker = _by_broker(partitions)
        self._emit_partitions(partitions, PartitionState.NON_EXISTENT, PartitionState.NEW)
        for node_id, held in by_broker.items():
            self._emit_replicas(held, node_id, ReplicaState.NON_EXISTENT, ReplicaState.NEW)
        if self._are_all_online(partitions, by_broker):
            self._emit_partitions(partitions, PartitionState.NEW, PartitionState.ONLINE)
            for node_id, held in by_broker.items():
                self._emit_replicas(held, node_id, ReplicaState.NEW, ReplicaState.ONLINE)
            return
        self._store_new(partitions, by_broker)
        for state in (PartitionState.ONLINE, PartitionState.OFFLINE):
            self._move_partitions((p for p in partitions if partition_state(p) is state), state)
        for node_id, held in by_broker.items():
            self._update_replicas(held, node_id)

    def _are_all_online(
        self, partitions: list[Partition], by_broker: dict[int, list[Partition]]
    ) -> bool:
        """Whether all partitions and replicas are online, so that no state is stored."""
        brokers = [self._control.image.brokers.get(node_id) for node_id in by_broker]
        return all(each.leader_id != NO_LEADER for each in partitions) and all(
            broker and not broker.fenced and not broker.log_dirs.failed for broker in brokers
        )

    def _store_new(
        self, partitions: list[Partition], by_broker: dict[int, list[Partition]]
    ) -> None:
        """Store that all of them are new."""
        self._partitions.update((each.key, PartitionState.NEW) for each in partitions)
        for node_id, held in by_broker.items():
            self._replicas.update(((each.key, node_id), ReplicaState.NEW) for each in held)

    def _topic_deleted(self, topic: Topic) -> None:
        with self.one_event():
            self._deleted.append(topic)

    def _partitions_deleted(self, topic: Topic) -> None:
        self._move_partitions(topic.partitions, PartitionState.OFFLINE)
        for node_id, held in _by_broker(topic.partitions).items():
            self._delete_replicas(held, node_id)
        offline, absent = PartitionState.OFFLINE, PartitionState.NON_EXISTENT
        self._emit_partitions(topic.partitions, offline, absent)
        for each in topic.partitions:
            self._partitions.pop(each.key, None)

    def _delete_replicas(self, partitions: list[Partition], node_id: int) -> None:
        self._move_replicas(partitions, node_id, ReplicaState.OFFLINE)
        former = ReplicaState.OFFLINE
        for state in _DELETION:
            self._emit_replicas(partitions, node_id, former, state)
            former = state
        for each in partitions:
            self._replicas.pop((each.key, node_id), None)

    def _emit_topics(self) -> None:
        created, deleted = self._created, self._deleted
        self._created, self._deleted = [], []
        self._control.runtime.emit(
            TopicsChanged(
                self._control.runtime.now_ms(),
                created=tuple(map(_changed, created)),
                deleted=tuple(map(_changed, deleted)),
            )
        )
        for topic in deleted:
            self._partitions_deleted(topic)
        for topic in created:
            self.partitions_created(topic.partitions)

    # -- other events ------------------------------------------------------------------------------

    def follow(self, event: Event) -> None:
        """Emit the transitions that follow from an event, after its other observers."""
        if type(event) not in _FOLLOWED:
            return
        if isinstance(event, ControllerChanged | PartitionsMoved | ReplicasMoved | TopicsChanged):
            self.history.append(event)
        elif isinstance(event, LeaderChanged | IsrChanged):
            self._update(event.topic, event.partition)
        elif isinstance(event, ReplicasChanged):
            self._reassign(event)
        elif isinstance(event, LogDirFailed) or (
            isinstance(event, BrokerChanged) and event.change in _LIVENESS_CHANGES
        ):
            for topic in self._control.image.topics.values():
                held = [each for each in topic.partitions if event.node_id in each.replicas]
                self._update_replicas(held, event.node_id)

    def _update(self, topic: str, index: int) -> None:
        partition = self._control.metadata.partition(topic, index)
        if partition is None:
            return
        state = partition_state(partition)
        if state is not self.partition(partition):
            self._move_partitions([partition], state)
        for node_id in partition.replicas:  # the states of other replicas follow from their brokers
            if self.replica(partition, node_id) is ReplicaState.NEW:
                self._update_replicas([partition], node_id)

    def _update_replicas(self, partitions: list[Partition], node_id: int) -> None:
        for state in (ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE):
            there = [each for each in partitions if self._state_of(each, node_id) is state]
            self._move_replicas(there, node_id, state)

    def _reassign(self, event: ReplicasChanged) -> None:
        """Emit the transitions of added and removed replicas."""
        partition = self._control.metadata.partition(event.topic, event.partition)
        if partition is None:
            return
        absent, new = ReplicaState.NON_EXISTENT, ReplicaState.NEW
        for node_id in event.replicas:
            if node_id not in event.former:
                self._emit_replicas([partition], node_id, absent, new)
                self._replicas[partition.key, node_id] = new
        for node_id in event.former:
            if node_id not in event.replicas:
                self._delete_replicas([partition], node_id)
        self._update(event.topic, event.partition)

    # -- transitions -------------------------------------------------------------------------------

    def partition(self, partition: Partition) -> PartitionState:
        """The last emitted state."""
        return self._partitions.get(partition.key, PartitionState.ONLINE)

    def replica(self, partition: Partition, node_id: int) -> ReplicaState:
        """The last emitted state."""
        return self._replicas.get((partition.key, node_id), ReplicaState.ONLINE)

    def _state_of(self, partition: Partition, node_id: int) -> ReplicaState:
        """The current state. A replica whose broker returned is online, in sync or not."""
        state = replica_state(self._control, partition, node_id)
        if state is ReplicaState.NEW and self.replica(partition, node_id) is not state:
            return ReplicaState.ONLINE
        return state

    def _move_partitions(self, partitions: Iterable[Partition], state: PartitionState) -> None:
        """Emit the transitions of partitions that were in another state."""
        by_former: dict[PartitionState, list[Partition]] = {}
        for each in partitions:
            former = self.partition(each)
            if former is not state:
                by_former.setdefault(former, []).append(each)
                _store(self._partitions, each.key, state, PartitionState.ONLINE)
        for former, moved in by_former.items():
            self._emit_partitions(moved, former, state)

    def _move_replicas(
        self, partitions: Iterable[Partition], node_id: int, state: ReplicaState
    ) -> None:
        by_former: dict[ReplicaState, list[Partition]] = {}
        for each in partitions:
            former = self.replica(each, node_id)
            if former is not state:
                by_former.setdefault(former, []).append(each)
                _store(self._replicas, (each.key, node_id), state, ReplicaState.ONLINE)
        for former, moved in by_former.items():
            self._emit_replicas(moved, node_id, former, state)

    def _emit_partitions(
        self, partitions: list[Partition], former: PartitionState, state: PartitionState
    ) -> None:
        if not partitions:
            return
        assert former in PARTITION_ENTERED_FROM[state], (former, state)
        indexes = tuple(each.index for each in partitions)
        name, now_ms = partitions[0].topic.name, self._control.runtime.now_ms()
        self._control.runtime.emit(
            PartitionsMoved(now_ms, name, indexes, former.value, state.value)
        )

    def _emit_replicas(
        self,
        partitions: list[Partition],
        node_id: int,
        former: ReplicaState,
        state: ReplicaState,
    ) -> None:
        if not partitions:
            return
        assert former in REPLICA_ENTERED_FROM[state], (former, state)
        indexes = tuple(each.index for each in partitions)
        name, now_ms = partitions[0].topic.name, self._control.runtime.now_ms()
        self._control.runtime.emit(
            ReplicasMoved(now_ms, name, indexes, node_id, former.value, state.value)
        )


def _store(states: dict[K, S], key: K, state: S, usual: S) -> None:
    if state is usual:
        states.pop(key, None)
    else:
        states[key] = state


def _by_broker(partitions: Iterable[Partition]) -> dict[int, list[Partition]]:
    held: dict[int, list[Partition]] = {}
    for partition in partitions:
        for node_id in partition.replicas:
            held.setdefault(node_id, []).append(partition)
    return held


def _changed(topic: Topic) -> ChangedTopic:
    assignment = tuple(tuple(each.replicas) for each in topic.partitions)
    topic_id = uuid_text(topic.topic_id)
    return ChangedTopic(topic.name, topic_id, assignment, topic.configs.overrides)
