"""Verification: the request of a partition's leader to the transaction coordinator.

With the first protocol (TV1) the producer has added the partition, and the leader verifies that.
With the second (TV2) the leader adds it. Only the first batch of a transaction in a partition waits
for the answer. The request is an AddPartitionsToTxn on the network between brokers; without a delay
between the brokers it is a call.

Source: AddPartitionsToTxnManager, ReplicaManager.maybeSendPartitionsToTransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.log.verification import NO_GUARD, VerificationGuard
from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.replication.network import Hop
from mockbroker.core.txn.events import Result
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import Timer
    from mockbroker.core.txn.events import TopicPartition
    from mockbroker_protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
    )

NONE = ErrorCode.NONE
_API = ApiKey.ADD_PARTITIONS_TO_TXN
ADDING_CLIENT_VERSION = 2  # leaders add partitions only for producers of TV2


class TxnOperation(Enum):
    """The operation of the request, by the client's version (AddPartitionsToTxnManager)."""

    VERIFY_OLD = "verify; INVALID_TXN_STATE if the partition is not in the transaction"
    VERIFY = "verify; TRANSACTION_ABORTABLE if the partition is not in the transaction"
    ADD = "add"


class UnverifiedBatch(NamedTuple):
    """A transactional batch before its append; `sequence` is its base sequence."""

    partition: Partition
    sequence: int


class VerifiedPartitions(NamedTuple):
    """The error codes of refused partitions, and the guards of the others."""

    errors: dict[TopicPartition, int]
    guards: dict[TopicPartition, VerificationGuard]

    def guard(self, key: TopicPartition) -> VerificationGuard:
        """The guard with which the batch of a partition is appended."""
        return self.guards.get(key, NO_GUARD)


class PartitionVerification:
    """The verification of one producer's batches by the leader of their partitions."""

    __slots__ = (
        "broker_id",
        "cluster",
        "epoch",
        "operation",
        "producer_id",
        "transactional_id",
    )

    def __init__(
        self,
        cluster: Cluster,
        broker_id: int,
        operation: TxnOperation,
        *,
        transactional_id: str,
        producer_id: int,
        epoch: int,
    ) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.operation = operation
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch

    @property
    def disabled(self) -> bool:
        """Whether verification is disabled (transaction.partition.verification.enable)."""
        return self.operation is not TxnOperation.ADD and not self.cluster.config(
            "transaction.partition.verification.enable"
        )

    def start(
        self, batches: Sequence[UnverifiedBatch], done: Callable[[VerifiedPartitions], None]
    ) -> None:
        """Verify the batches that open a transaction; `done` is called with the result."""
        result = VerifiedPartitions({}, {})
        wanted: list[TopicPartition] = []
        for partition, sequence in batches:
            key = (partition.topic.name, partition.index)
            if partition.leader_id != self.broker_id:
                result.errors[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            guard = partition.log.producers.start_verification(
                self.producer_id,
                self.epoch,
                sequence,
                self.cluster.runtime.now_ms(),
                bumps=self.operation is TxnOperation.ADD,
            )
            if isinstance(guard, int):
                result.errors[key] = guard
            elif guard is not None:
                result.guards[key] = guard
                wanted.append(key)
        if not wanted:
            done(result)
            return

        def finish(errors: Sequence[ErrorCode]) -> None:
            for key, error in zip(wanted, errors, strict=True):
                if error is not NONE:
                    result.errors[key] = self._translated(error)
            done(result)

        _CoordinatorRequest(self, tuple(wanted), finish).send()

    def _translated(self, error: ErrorCode) -> ErrorCode:
        """The error for the producer, which depends on its version."""
        if error is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if error is ErrorCode.TRANSACTION_ABORTABLE and self.operation is TxnOperation.VERIFY_OLD:
            return ErrorCode.INVALID_TXN_STATE
        return error

    def coordinator_id(self) -> int | None:
        """The broker that coordinates the id, or None."""
        image = self.cluster.metadata.image_of(self.broker_id)
        topic = image.topics.get(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return None
        index = coordinator_partition(self.transactional_id, len(topic.partitions))
        leader = image.brokers.get(topic.partitions[index].leader_id)
        return None if leader is None or leader.fenced else leader.node_id

    def handle(
        self,
        coordinator_id: int,
        partitions: tuple[TopicPartition, ...],
        done: Callable[[Sequence[ErrorCode]], None],
    ) -> None:
        """Handle the request on the coordinator; `done` gets an error code for each partition."""
        coordinator = self.cluster.processes[coordinator_id].transactions
        shard = coordinator.shard_of(self.transactional_id)
        if isinstance(shard, ErrorCode):
            done([shard] * len(partitions))
        elif not self.transactional_id:
            done([ErrorCode.INVALID_REQUEST] * len(partitions))
        elif self.operation is TxnOperation.ADD:

            def added(result: Result) -> None:
                done([result.error] * len(partitions))

            shard.add(
                self.transactional_id,
                self.producer_id,
                self.epoch,
                partitions,
                ADDING_CLIENT_VERSION,
                added,
            )
        else:
            done(shard.verify(self.transactional_id, self.producer_id, self.epoch, partitions))

    def when_not_pending(self, call: Callable[[], None]) -> None:
        """Run `call` once no transition of the id is pending; drop it without a coordinator."""
        coordinator_id = self.coordinator_id()
        if coordinator_id is not None:
            coordinator = self.cluster.processes[coordinator_id].transactions
            shard = coordinator.shard_of(self.transactional_id)
            if not isinstance(shard, ErrorCode):
                shard.when_not_pending(self.transactional_id, call)


class _CoordinatorRequest:
    """One AddPartitionsToTxn in flight, with its timeout."""

    __slots__ = ("_answered", "_done", "_partitions", "_timer", "_verification")

    def __init__(
        self,
        verification: PartitionVerification,
        partitions: tuple[TopicPartition, ...],
        done: Callable[[Sequence[ErrorCode]], None],
    ) -> None:
        self._verification = verification
        self._partitions = partitions
        self._done = done
        self._answered = False
        self._timer: Timer | None = None

    def send(self) -> None:
        verification, cluster = self._verification, self._verification.cluster
        coordinator_id = verification.coordinator_id()
        if coordinator_id is None:
            self.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        network = cluster.replication.network
        running = cluster.metadata.is_running(coordinator_id)
        if running and network.is_direct(verification.broker_id, coordinator_id, _API):
            verification.handle(coordinator_id, self._partitions, self.answer)
            return
        due_ms = cluster.runtime.now_ms() + cluster.config_int("request.timeout.ms")
        self._timer = cluster.runtime.timers.call_at(
            due_ms, lambda: self.fail(ErrorCode.NETWORK_EXCEPTION)
        )
        network.send(_VerificationHop(verification, self, self._partitions, coordinator_id))

    def fail(self, error: ErrorCode) -> None:
        """Complete all partitions with an error."""
        self.answer([error] * len(self._partitions))

    def answer(self, errors: Sequence[ErrorCode]) -> None:
        """Complete with error codes; later calls have no effect."""
        if not self._answered:
            self._answered = True
            if self._timer is not None:
                self._timer.cancel()
            self._done(errors)


class _VerificationHop(Hop):
    """The request on the network; its response is an error code for each partition."""

    __slots__ = ("_partitions", "_request", "_verification")

    API = _API

    def __init__(
        self,
        verification: PartitionVerification,
        request: _CoordinatorRequest,
        partitions: tuple[TopicPartition, ...],
        coordinator_id: int,
    ) -> None:
        super().__init__(verification.broker_id, coordinator_id)
        self._verification = verification
        self._request = request
        self._partitions = partitions

    @property
    def transactional_id(self) -> str:
        return self._verification.transactional_id

    def handle_request(self) -> None:
        answer = self._verification.cluster.replication.network.answer
        self._verification.handle(
            self.receiver, self._partitions, lambda errors: answer(self, errors)
        )

    def handle_answer(self, answer: Sequence[ErrorCode]) -> None:
        self._request.answer(answer)

    def lost(self) -> None:
        """The request times out after request.timeout.ms."""

    def disconnected(self) -> None:
        self._request.fail(ErrorCode.NETWORK_EXCEPTION)

    def error_answer(self, error: ErrorCode) -> Sequence[ErrorCode]:
        return [error] * len(self._partitions)

    def request(self) -> AddPartitionsToTxnRequest:
        from mockbroker_protocol.messages import add_partitions_to_txn as messages

        topics: dict[str, messages.AddPartitionsToTxnTopic] = {}
        for name, index in self._partitions:
            topic = topics.setdefault(name, messages.AddPartitionsToTxnTopic(name, []))
            topic.partitions.append(index)
        transaction = messages.AddPartitionsToTxnTransaction(
            transactional_id=self._verification.transactional_id,
            producer_id=self._verification.producer_id,
            producer_epoch=self._verification.epoch,
            verify_only=self._verification.operation is not TxnOperation.ADD,
            topics=list(topics.values()),
        )
        return messages.AddPartitionsToTxnRequest(transactions=[transaction])

    def response(self, answer: Sequence[ErrorCode]) -> AddPartitionsToTxnResponse:
        from mockbroker_protocol.messages import add_partitions_to_txn as messages

        topics: dict[str, messages.AddPartitionsToTxnTopicResult] = {}
        for (name, index), error in zip(self._partitions, answer, strict=True):
            topic = topics.setdefault(name, messages.AddPartitionsToTxnTopicResult(name, []))
            topic.results_by_partition.append(
                messages.AddPartitionsToTxnPartitionResult(index, int(error))
            )
        result = messages.AddPartitionsToTxnResult(
            self._verification.transactional_id, list(topics.values())
        )
        return messages.AddPartitionsToTxnResponse(results_by_transaction=[result])
