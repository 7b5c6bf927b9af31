"""The states of partitions and replicas, by the names that Kafka's controller gave them.

Up to Kafka 3.9 a controller with ZooKeeper kept two state machines, and tools, logs and people
still speak of their states: a partition is new until it has its first leader, then online, and
offline while it has none; a replica is new, online or offline, and goes through the steps of its
deletion. A controller of the quorum knows the same of its partitions without naming it.

Nothing here decides anything. What is told follows from leaders, ISRs and brokers as they change.
All is well with most partitions, so only what differs from that is remembered.

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
from mockbroker.core.log.epoch_cache import NO_EPOCH
from mockbroker.core.replication.partition import NO_LEADER, Partition

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
# The way of a replica that is given up.
_DELETION = (
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)
# The steps of a broker's life by which its replicas come and go.
_DECIDE_WHO_IS_ALIVE = ("fenced", "unfenced", "unregistered")
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
Key = tuple[bytes, int]  # topic id and partition


def partition_state(partition: Partition) -> PartitionState:
    """What a partition's leader says of it."""
    if partition.leader_id != NO_LEADER:
        return PartitionState.ONLINE
    return PartitionState.NEW if partition.leader_epoch == NO_EPOCH else PartitionState.OFFLINE


def replica_state(control: ReplicationControl, partition: Partition, node_id: int) -> ReplicaState:
    """What is known of a replica's broker, its directory, and whether it came in sync yet."""
    broker = control.image.brokers.get(node_id)
    if broker is None or broker.fenced or not broker.log_dirs.has(partition):
        return ReplicaState.OFFLINE
    if partition_state(partition) is PartitionState.NEW:
        return ReplicaState.NEW
    moving = control.reassignments.get(partition.key)
    if moving is not None and node_id in moving.adding and node_id not in partition.isr:
        return ReplicaState.NEW
    return ReplicaState.ONLINE


class StateLog:
    """Tells every step of partitions and replicas, and remembers the last ones.

    `history` holds at most HISTORY_MAX events, oldest first: those steps, and which broker became
    the controller.
    """

    def __init__(self, control: ReplicationControl) -> None:
        self.history: deque[Event] = deque(maxlen=HISTORY_MAX)
        self._control = control
        # What is not online, as last told.
        self._partitions: dict[Key, PartitionState] = {}
        self._replicas: dict[tuple[Key, int], ReplicaState] = {}
        # Topics that came or went, and are in no event yet because what did it goes on.
        self._created: list[Topic] = []
        self._deleted: list[Topic] = []
        self._together = 0
        control.metadata.on_topic_created.append(self._topic_created)
        control.metadata.on_topic_deleted.append(self._topic_deleted)

    # -- topics ------------------------------------------------------------------------------------

    @contextmanager
    def together(self) -> Iterator[None]:
        """What happens to topics in this block is one event, which comes at its end; the steps of
        their partitions and replicas follow it.
        """
        self._together += 1
        try:
            yield
        finally:
            self._together -= 1
            if not self._together and (self._created or self._deleted):
                self._tell_topics()

    def _topic_created(self, topic: Topic) -> None:
        with self.together():
            self._created.append(topic)

    def partitions_created(self, partitions: Iterable[Partition]) -> None:
        """Partitions came to be, perhaps without a leader for now."""
        partitions = list(partitions)
        by_broker = _by_broker(partitions)
        self._tell_partitions(partitions, PartitionState.NON_EXISTENT, PartitionState.NEW)
        for node_id, held in by_broker.items():
            self._tell_replicas(held, node_id, ReplicaState.NON_EXISTENT, ReplicaState.NEW)
        if self._are_all_online(partitions, by_broker):
            self._tell_partitions(partitions, PartitionState.NEW, PartitionState.ONLINE)
            for node_id, held in by_broker.items():
                self._tell_replicas(held, node_id, ReplicaState.NEW, ReplicaState.ONLINE)
            return
        self._remember(partitions, by_broker)
        for state in (PartitionState.ONLINE, PartitionState.OFFLINE):
            self._move_partitions((p for p in partitions if partition_state(p) is state), state)
        for node_id, held in by_broker.items():
            self._look_at_replicas(held, node_id)

    def _are_all_online(
        self, partitions: list[Partition], by_broker: dict[int, list[Partition]]
    ) -> bool:
        """Whether all is as it should be, so that nothing has to be remembered."""
        brokers = [self._control.image.brokers.get(node_id) for node_id in by_broker]
        return all(each.leader_id != NO_LEADER for each in partitions) and all(
            broker and not broker.fenced and not broker.log_dirs.failed for broker in brokers
        )

    def _remember(self, partitions: list[Partition], by_broker: dict[int, list[Partition]]) -> None:
        """That all of them are new."""
        self._partitions.update((_key(each), PartitionState.NEW) for each in partitions)
        for node_id, held in by_broker.items():
            self._replicas.update(((_key(each), node_id), ReplicaState.NEW) for each in held)

    def _topic_deleted(self, topic: Topic) -> None:
        with self.together():
            self._deleted.append(topic)

    def _partitions_deleted(self, topic: Topic) -> None:
        self._move_partitions(topic.partitions, PartitionState.OFFLINE)
        for node_id, held in _by_broker(topic.partitions).items():
            self._delete_replicas(held, node_id)
        offline, absent = PartitionState.OFFLINE, PartitionState.NON_EXISTENT
        self._tell_partitions(topic.partitions, offline, absent)
        for each in topic.partitions:
            self._partitions.pop(_key(each), None)

    def _delete_replicas(self, partitions: list[Partition], node_id: int) -> None:
        self._move_replicas(partitions, node_id, ReplicaState.OFFLINE)
        former = ReplicaState.OFFLINE
        for state in _DELETION:
            self._tell_replicas(partitions, node_id, former, state)
            former = state
        for each in partitions:
            self._replicas.pop((_key(each), node_id), None)

    def _tell_topics(self) -> None:
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

    # -- what else happens -------------------------------------------------------------------------

    def follow(self, event: Event) -> None:
        """Something happened, and everybody has heard of it: tell what follows."""
        if type(event) not in _FOLLOWED:
            return
        if isinstance(event, ControllerChanged | PartitionsMoved | ReplicasMoved | TopicsChanged):
            self.history.append(event)
        elif isinstance(event, LeaderChanged | IsrChanged):
            self._look_at(event.topic, event.partition)
        elif isinstance(event, ReplicasChanged):
            self._reassign(event)
        elif isinstance(event, LogDirFailed) or (
            isinstance(event, BrokerChanged) and event.change in _DECIDE_WHO_IS_ALIVE
        ):
            for topic in self._control.image.topics.values():
                held = [each for each in topic.partitions if event.node_id in each.replicas]
                self._look_at_replicas(held, event.node_id)

    def _look_at(self, topic: str, index: int) -> None:
        partition = self._control.metadata.partition(topic, index)
        if partition is None:
            return
        state = partition_state(partition)
        if state is not self.partition(partition):
            self._move_partitions([partition], state)
        for node_id in partition.replicas:  # brokers decide of those that are not new
            if self.replica(partition, node_id) is ReplicaState.NEW:
                self._look_at_replicas([partition], node_id)

    def _look_at_replicas(self, partitions: list[Partition], node_id: int) -> None:
        for state in (ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE):
            there = [each for each in partitions if self._state_of(each, node_id) is state]
            self._move_replicas(there, node_id, state)

    def _reassign(self, event: ReplicasChanged) -> None:
        """Replicas that are added begin as new ones; those that were removed are deleted."""
        partition = self._control.metadata.partition(event.topic, event.partition)
        if partition is None:
            return
        absent, new = ReplicaState.NON_EXISTENT, ReplicaState.NEW
        for node_id in event.replicas:
            if node_id not in event.former:
                self._tell_replicas([partition], node_id, absent, new)
                self._replicas[_key(partition), node_id] = new
        for node_id in event.former:
            if node_id not in event.replicas:
                self._delete_replicas([partition], node_id)
        self._look_at(event.topic, event.partition)

    # -- telling -----------------------------------------------------------------------------------

    def partition(self, partition: Partition) -> PartitionState:
        """The state that was told last."""
        return self._partitions.get(_key(partition), PartitionState.ONLINE)

    def replica(self, partition: Partition, node_id: int) -> ReplicaState:
        """The state that was told last."""
        return self._replicas.get((_key(partition), node_id), ReplicaState.ONLINE)

    def _state_of(self, partition: Partition, node_id: int) -> ReplicaState:
        """The state of now. One whose broker came back is online, in sync or not."""
        state = replica_state(self._control, partition, node_id)
        if state is ReplicaState.NEW and self.replica(partition, node_id) is not state:
            return ReplicaState.ONLINE
        return state

    def _move_partitions(self, partitions: Iterable[Partition], state: PartitionState) -> None:
        """Tell of those that are in another state by now."""
        by_former: dict[PartitionState, list[Partition]] = {}
        for each in partitions:
            former = self.partition(each)
            if former is not state:
                by_former.setdefault(former, []).append(each)
                _note(self._partitions, _key(each), state, PartitionState.ONLINE)
        for former, moved in by_former.items():
            self._tell_partitions(moved, former, state)

    def _move_replicas(
        self, partitions: Iterable[Partition], node_id: int, state: ReplicaState
    ) -> None:
        by_former: dict[ReplicaState, list[Partition]] = {}
        for each in partitions:
            former = self.replica(each, node_id)
            if former is not state:
                by_former.setdefault(former, []).append(each)
                _note(self._replicas, (_key(each), node_id), state, ReplicaState.ONLINE)
        for former, moved in by_former.items():
            self._tell_replicas(moved, node_id, former, state)

    def _tell_partitions(
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

    def _tell_replicas(
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


def _note(states: dict[K, S], key: K, state: S, usual: S) -> None:
    if state is usual:
        states.pop(key, None)
    else:
        states[key] = state


def _key(partition: Partition) -> Key:
    return partition.topic.topic_id, partition.index


def _by_broker(partitions: Iterable[Partition]) -> dict[int, list[Partition]]:
    held: dict[int, list[Partition]] = {}
    for partition in partitions:
        for node_id in partition.replicas:
            held.setdefault(node_id, []).append(partition)
    return held


def _changed(topic: Topic) -> ChangedTopic:
    assignment = tuple(tuple(each.replicas) for each in topic.partitions)
    return ChangedTopic(topic.name, uuid_text(topic.topic_id), assignment)
