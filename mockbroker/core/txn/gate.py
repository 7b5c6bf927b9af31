"""What a partition's leader asks the transaction coordinator before a transaction writes there.

With the first protocol (TV1) the producer has added the partition itself, and the leader has that
verified; with the second (TV2) the leader adds it. Either way the first batch of a transaction in a
partition waits for the answer, later ones do not. Between brokers that reach each other at once the
question costs no time; else question and answer are messages of the network between brokers.

Source: AddPartitionsToTxnManager, ReplicaManager.maybeSendPartitionsToTransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.broker_life import PAUSED, RUNNING
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.log.verification import NO_GUARD, Guard
from mockbroker.core.replication.network import Message
from mockbroker.core.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.events import Result
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition
    from mockbroker.core.timers import Timer
    from mockbroker.core.txn.events import TopicPartition

NONE = ErrorCode.NONE
QUESTION = "add_partitions_to_txn"
ANSWER = "add_partitions_to_txn answer"
ADDING_CLIENT_VERSION = 2  # only producers of TV2 leave the adding to the leader


class Operation(Enum):
    """What the version of the client's request makes of the question, and of the answer."""

    VERIFY_OLD = "verify; INVALID_TXN_STATE if the partition is not there"
    VERIFY = "verify; TRANSACTION_ABORTABLE if the partition is not there"
    ADD = "add"


class Batch(NamedTuple):
    """A transactional batch that is to be appended; `sequence` is its first."""

    partition: Partition
    sequence: int


class Verdict(NamedTuple):
    """Error codes of the partitions that must not be written to, guards of those that may."""

    errors: dict[TopicPartition, int]
    guards: dict[TopicPartition, Guard]

    def guard(self, key: TopicPartition) -> Guard:
        """What the batch of one partition comes to the log with."""
        return self.guards.get(key, NO_GUARD)


class Gate:
    """One producer's way to its coordinator, through the broker that leads the partitions."""

    __slots__ = (
        "_cluster",
        "_epoch",
        "_operation",
        "_producer_id",
        "_transactional_id",
        "broker_id",
    )

    def __init__(
        self,
        cluster: Cluster,
        broker_id: int,
        operation: Operation,
        *,
        transactional_id: str,
        producer_id: int,
        epoch: int,
    ) -> None:
        self._cluster = cluster
        self.broker_id = broker_id
        self._operation = operation
        self._transactional_id = transactional_id
        self._producer_id = producer_id
        self._epoch = epoch

    @property
    def open(self) -> bool:
        """Whether nothing is asked at all (transaction.partition.verification.enable=false)."""
        return self._operation is not Operation.ADD and not self._cluster.config(
            "transaction.partition.verification.enable"
        )

    def ask(self, batches: Sequence[Batch], done: Callable[[Verdict], None]) -> None:
        """Have the coordinator asked about the batches that open a transaction."""
        verdict = Verdict({}, {})
        wanted: list[TopicPartition] = []
        for partition, sequence in batches:
            key = (partition.topic.name, partition.index)
            if partition.leader_id != self.broker_id:
                verdict.errors[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            guard = partition.log.producers.start_verification(
                self._producer_id,
                self._epoch,
                sequence,
                bumps=self._operation is Operation.ADD,
            )
            if isinstance(guard, int):
                verdict.errors[key] = guard
            elif guard is not None:
                verdict.guards[key] = guard
                wanted.append(key)
        if not wanted:
            done(verdict)
            return

        def finish(errors: Sequence[ErrorCode]) -> None:
            for key, error in zip(wanted, errors, strict=True):
                if error is not NONE:
                    verdict.errors[key] = self._translated(error)
            done(verdict)

        _Question(self, tuple(wanted), finish).go()

    def _translated(self, error: ErrorCode) -> ErrorCode:
        """Producers expect another word for being fenced, old ones for an unknown partition."""
        if error is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if error is ErrorCode.TRANSACTION_ABORTABLE and self._operation is Operation.VERIFY_OLD:
            return ErrorCode.INVALID_TXN_STATE
        return error

    def coordinator_id(self) -> int | None:
        """The broker to ask, or None while nobody coordinates the id."""
        image = self._cluster.image_of(self.broker_id)
        topic = image.topics.get(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return None
        index = coordinator_partition(self._transactional_id, len(topic.partitions))
        leader = image.brokers.get(topic.partitions[index].leader_id)
        return None if leader is None or leader.fenced else leader.node_id

    def put(
        self,
        coordinator_id: int,
        partitions: tuple[TopicPartition, ...],
        done: Callable[[Sequence[ErrorCode]], None],
    ) -> None:
        """Ask the coordinator, on its own broker; an error code for each partition."""
        coordinator = self._cluster.processes[coordinator_id].transactions
        shard = coordinator.shard_of(self._transactional_id)
        if isinstance(shard, ErrorCode):
            done([shard] * len(partitions))
        elif not self._transactional_id:
            done([ErrorCode.INVALID_REQUEST] * len(partitions))
        elif self._operation is Operation.ADD:

            def added(result: Result) -> None:
                done([result.error] * len(partitions))

            shard.add(
                self._transactional_id,
                self._producer_id,
                self._epoch,
                partitions,
                ADDING_CLIENT_VERSION,
                added,
            )
        else:
            done(shard.verify(self._transactional_id, self._producer_id, self._epoch, partitions))

    def when_settled(self, call: Callable[[], None]) -> None:
        """Have `call` called when what is pending is over; it may be that nothing calls."""
        coordinator_id = self.coordinator_id()
        if coordinator_id is not None:
            coordinator = self._cluster.processes[coordinator_id].transactions
            shard = coordinator.shard_of(self._transactional_id)
            if not isinstance(shard, ErrorCode):
                shard.when_settled(self._transactional_id, call)

    @property
    def cluster(self) -> Cluster:
        return self._cluster


class _Question:
    """One question on its way to the coordinator and back."""

    __slots__ = ("_answered", "_done", "_gate", "_partitions", "_timer")

    def __init__(
        self,
        gate: Gate,
        partitions: tuple[TopicPartition, ...],
        done: Callable[[Sequence[ErrorCode]], None],
    ) -> None:
        self._gate = gate
        self._partitions = partitions
        self._done = done
        self._answered = False
        self._timer: Timer | None = None

    def go(self) -> None:
        gate, cluster = self._gate, self._gate.cluster
        coordinator_id = gate.coordinator_id()
        if coordinator_id is None:
            self._fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        network = cluster.replication.network
        running = cluster.replication.is_running(coordinator_id)
        near = coordinator_id == gate.broker_id or network.is_direct(gate.broker_id, coordinator_id)
        if running and near:
            gate.put(coordinator_id, self._partitions, self._answer)
            return
        due_ms = cluster.now_ms() + cluster.config_int("request.timeout.ms")
        self._timer = cluster.timers.call_at(
            due_ms, lambda: self._fail(ErrorCode.NETWORK_EXCEPTION)
        )

        def answer(errors: Sequence[ErrorCode]) -> None:
            message = Message(coordinator_id, gate.broker_id, ANSWER, *self._partitions[0])
            network.send(message, lambda: self._answer(errors))

        def arrive() -> None:
            broker = cluster.processes.get(coordinator_id)
            if broker is None or broker.state not in (RUNNING, PAUSED):
                self._fail(ErrorCode.NETWORK_EXCEPTION)  # the connection broke
            elif broker.state == RUNNING:
                gate.put(coordinator_id, self._partitions, answer)

        network.send(
            Message(gate.broker_id, coordinator_id, QUESTION, *self._partitions[0]), arrive
        )

    def _fail(self, error: ErrorCode) -> None:
        self._answer([error] * len(self._partitions))

    def _answer(self, errors: Sequence[ErrorCode]) -> None:
        if not self._answered:
            self._answered = True
            if self._timer is not None:
                self._timer.cancel()
            self._done(errors)
