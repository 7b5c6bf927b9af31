"""The transactional ids of one partition of `__transaction_state`, on the broker that leads it.

A request becomes an event of the id's state machine. The shard carries out the effects: it answers
requests, writes records, sends markers and sets timers. A record is stored when it is replicated
(see `coordinator.shard`). `loader` builds a shard from the log.

Source: TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from mockbroker.core.coordinator.shard import CoordinatorShard
from mockbroker.core.events import TransactionMoved
from mockbroker.core.replication.partition import ACKS_ALL
from mockbroker.core.txn import records as txn_records
from mockbroker.core.txn.events import (
    AddPartitions,
    AddResult,
    Effect,
    EndResult,
    EndTransaction,
    Event,
    Expire,
    InitProducer,
    Loaded,
    Marked,
    Moved,
    Persist,
    Persisted,
    Remove,
    Reply,
    Result,
    SendMarkers,
    Tick,
    TopicPartition,
)
from mockbroker.core.txn.loader import replay
from mockbroker.core.txn.machine import TransactionMetadata, new_image
from mockbroker.core.txn.states import TransactionState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, Record, build_batch

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.txn.coordinator import TransactionCoordinator

NONE = ErrorCode.NONE
UNKNOWN_ID = ErrorCode.INVALID_PRODUCER_ID_MAPPING
FEATURE = "transaction.version"
IDS_PER_TURN = 500


class TransactionShard(CoordinatorShard["TransactionCoordinator"]):
    """One partition's transactional ids. `epoch` is the coordinator epoch: the leader epoch."""

    __slots__ = ("_times", "_waiting", "epoch", "transactions")

    acks = ACKS_ALL
    timeout_config = "request.timeout.ms"

    def __init__(self, coordinator: TransactionCoordinator, partition: Partition) -> None:
        super().__init__(coordinator, partition)
        self._times = coordinator.times
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self.epoch = partition.leader_epoch
        self.transactions: dict[str, TransactionMetadata] = {}

    # ----------------------------------------------------------------------------------- requests

    @property
    def server_version(self) -> int:
        """The cluster's transaction.version, by which the coordinator aborts transactions."""
        return self.coordinator.features.level(FEATURE)

    def init(
        self,
        transactional_id: str,
        timeout_ms: int,
        producer_id: int,
        epoch: int,
        done: Callable[[Result], None],
    ) -> None:
        """InitProducerId. The first request creates the id."""
        transaction = self.transactions.get(transactional_id)
        now_ms = self._times.now_ms()
        if transaction is None:
            image = new_image(self._new_producer_id(), timeout_ms, now_ms)
            transaction = TransactionMetadata(transactional_id, image)
            self.transactions[transactional_id] = transaction
        event = InitProducer(
            callback=done,
            timeout_ms=timeout_ms,
            producer_id=producer_id,
            epoch=epoch,
            new_producer_id=self._next_producer_id(transaction),
            server_version=self.server_version,
        )
        self._run(transaction, event)

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: tuple[TopicPartition, ...],
        version: int,
        done: Callable[[Result], None],
    ) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn; `version` is the client's transaction version."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            done(AddResult(UNKNOWN_ID))
            return
        event = AddPartitions(
            callback=done,
            producer_id=producer_id,
            epoch=epoch,
            partitions=partitions,
            version=version,
        )
        self._run(transaction, event)

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: tuple[TopicPartition, ...],
    ) -> list[ErrorCode]:
        """AddPartitionsToTxn that only verifies: an error for each partition, in order."""
        transaction = self.transactions.get(transactional_id)
        errors: ErrorCode | list[ErrorCode] = UNKNOWN_ID
        if transaction is not None:
            errors = transaction.verify(producer_id, epoch, partitions)
        return [errors] * len(partitions) if isinstance(errors, ErrorCode) else errors

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        version: int,
        done: Callable[[Result], None],
        *,
        committed: bool,
    ) -> None:
        """EndTxn; `version` is the client's transaction version."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            done(EndResult(UNKNOWN_ID))
            return
        event = EndTransaction(
            callback=done,
            producer_id=producer_id,
            epoch=epoch,
            committed=committed,
            version=version,
            new_producer_id=self._next_producer_id(transaction),
        )
        self._run(transaction, event)

    def check_timeout(self, transactional_id: str) -> None:
        """Abort the transaction of an id if it has timed out."""
        transaction = self.transactions[transactional_id]
        tick = Tick(
            new_producer_id=self._next_producer_id(transaction), server_version=self.server_version
        )
        self._run(transaction, tick)

    def _next_producer_id(self, transaction: TransactionMetadata) -> int:
        return self._new_producer_id() if transaction.needs_producer_id else -1

    def _new_producer_id(self) -> int:
        return self._runtime.ids.producer_id(self.coordinator.broker_id)

    def when_not_pending(self, transactional_id: str, call: Callable[[], None]) -> None:
        """Run `call` once no transition of an id is pending. An unload drops the call."""
        self._waiting.setdefault(transactional_id, []).append(call)

    def marked(
        self, transaction: TransactionMetadata, partitions: tuple[TopicPartition, ...]
    ) -> None:
        """Handle that markers were written or are no longer needed."""
        if not self.unloaded:
            self._run(transaction, Marked(partitions))

    def expire(self, expiration_ms: int) -> Iterator[None]:
        """Write tombstones for ids that were unused for `expiration_ms`, in turns."""
        for number, transactional_id in enumerate(list(self.transactions), 1):
            transaction = self.transactions.get(transactional_id)
            if transaction is not None:
                self._run(transaction, Expire(expiration_ms))
            if number % IDS_PER_TURN == 0:
                yield

    # ---------------------------------------------------------------------- loading and unloading

    def is_current_for(self, partition: Partition) -> bool:
        return super().is_current_for(partition) and partition.leader_epoch == self.epoch

    def replay(self, header: BatchHeader, record: Record) -> None:
        if not header.is_control:
            replay(self, record)

    def on_loaded(self) -> Iterator[None]:
        """Complete decided ends, and set the timers of open transactions."""
        for number, transaction in enumerate(list(self.transactions.values())):
            if number and number % IDS_PER_TURN == 0:
                yield
                if self.unloaded:
                    return
            self._run(transaction, Loaded())

    def on_unloaded(self) -> None:
        self._waiting.clear()
        self.transactions.clear()

    # -------------------------------------------------------------------------- events and effects

    def _run(self, transaction: TransactionMetadata, event: Event) -> None:
        self._apply(transaction, transaction.handle(event, self._times.now_ms()))
        if self.unloaded:
            return
        self._rearm(transaction)
        if self._waiting and transaction.pending is None:
            now_ms = self._runtime.now_ms()
            for call in self._waiting.pop(transaction.transactional_id, ()):
                self._runtime.timers.call_at(now_ms, call)

    def _apply(self, transaction: TransactionMetadata, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                cast("Callable[[Result], None]", effect.callback)(effect.result)
            elif isinstance(effect, Persist):
                self._store(transaction, effect)
            elif isinstance(effect, SendMarkers):
                self.coordinator.markers.send(self, transaction, effect)
            elif isinstance(effect, Moved):
                self._emit_moved(transaction, effect)
            elif isinstance(effect, Remove):
                self._remove(transaction.transactional_id)

    def _emit_moved(self, transaction: TransactionMetadata, moved: Moved) -> None:
        self._runtime.emit(
            TransactionMoved(
                self._runtime.now_ms(),
                self.coordinator.broker_id,
                transaction.transactional_id,
                moved.previous.value,
                moved.state.value,
                transaction.producer_id,
                transaction.epoch,
                transaction.timeout_ms,
                transaction.start_ms,
            )
        )

    def _remove(self, transactional_id: str) -> None:
        self.transactions.pop(transactional_id, None)
        self._timers.cancel(transactional_id)

    def _store(self, transaction: TransactionMetadata, persist: Persist) -> None:
        """Append a record; the event `Persisted` follows when it is replicated."""
        image, now_ms = persist.image, self._runtime.now_ms()
        value = None if image is None else txn_records.value_of(image, self.server_version)
        record = Record(
            timestamp=now_ms, key=txn_records.key_of(transaction.transactional_id), value=value
        )
        failed, _ = self.write(build_batch([record]), now_ms)
        self.when_replicated(
            lambda error: self._run(transaction, Persisted(persist, error)), failed
        )

    def _rearm(self, transaction: TransactionMetadata) -> None:
        """Set the timer of an id to its deadline, unless it is set to an earlier time."""
        due_ms = transaction.deadline_ms()
        if due_ms is not None and transaction.state is TransactionState.ONGOING:
            due_ms = self.coordinator.next_scan_ms(due_ms)
        self._timers.arm(self._times, transaction.transactional_id, due_ms, self.check_timeout)
