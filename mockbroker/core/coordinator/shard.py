"""A coordinator's state of one partition of its topic, on the leader.

A shard writes records to its partition, and *defers* the responses until the high watermark has
passed the records. It passes them at once if the followers are caught up. After a timeout the
response is COORDINATOR_NOT_AVAILABLE, although the records may be committed later. If the broker
loses the leadership, it is NOT_COORDINATOR.

Source: CoordinatorRuntime with its DeferredEventQueue, TransactionStateManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from mockbroker.core.timing.timers import DueTimers, Timer
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.errors import ERROR_CODES
from mockbroker_protocol.records import BatchHeader, Record, iter_records
from mockbroker_protocol.records.batch import Buffer

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.runtime import Runtime

NONE = ErrorCode.NONE
RECORDS_PER_TURN = 500  # of a load

# The error for the client after a failed write (CoordinatorOperationExceptionHelper,
# TransactionStateManager.appendTransactionToLog); others are UNKNOWN_SERVER_ERROR.
APPEND_ERRORS: dict[int, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


class ShardCoordinator(Protocol):
    """The coordinator that a shard belongs to (see `CoordinatorRuntime`)."""

    @property
    def runtime(self) -> Runtime: ...
    @property
    def configs(self) -> ClusterConfigs: ...
    @property
    def broker_id(self) -> int: ...

    def is_paused(self) -> bool:
        """Whether the broker's process is paused; its timers do not run then."""
        ...


C = TypeVar("C", bound=ShardCoordinator)


class _DeferredEvent:
    """A response that waits until the high watermark has reached `required_offset`."""

    __slots__ = ("_then", "required_offset", "timer")

    def __init__(self, required_offset: int, then: Callable[[ErrorCode], None]) -> None:
        self.required_offset = required_offset
        self._then = then
        self.timer: Timer | None = None

    def complete(self, error: ErrorCode) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._then(error)


class CoordinatorShard(Generic[C]):
    """One partition: `loading` until its log is read, `unloaded` at the end.

    A subclass sets the `acks` of its writes and the broker config of their timeout.
    """

    __slots__ = (
        "_configs",
        "_deferred",
        "_log",
        "_runtime",
        "_timers",
        "coordinator",
        "loading",
        "partition",
        "unloaded",
        "unreadable",
    )

    acks: ClassVar[int]
    timeout_config: ClassVar[str]

    def __init__(self, coordinator: C, partition: Partition) -> None:
        self.coordinator = coordinator
        self._runtime = coordinator.runtime
        self._configs = coordinator.configs
        self.partition = partition
        self._log: ReplicaLog = partition.log
        self._timers: DueTimers[str] = DueTimers(coordinator.is_paused)
        self._deferred: deque[_DeferredEvent] = deque()
        self.loading = True
        self.unloaded = False
        self.unreadable = 0  # records of the log that could not be decoded
        partition.watch(self)

    # ---------------------------------------------------------------------- loading and unloading

    def is_current_for(self, partition: Partition) -> bool:
        """Whether this is the shard of the partition's current leadership and log."""
        return (
            partition is self.partition
            and partition.leader_id == self.coordinator.broker_id
            and partition.log is self._log
            and not partition.deleted
            and not self.unloaded
        )

    def read(self) -> Iterator[None]:
        """Replay the partition's log from its start to its end, in turns.

        Nobody else writes meanwhile: markers wait for a loaded shard. The cleaner removes a
        tombstone long after the records before it.
        """
        offset = 0
        while not self.unloaded:
            some = list(islice(stored_records(self._log, offset), RECORDS_PER_TURN))
            for header, record in some:
                self.replay(header, record)
            if len(some) < RECORDS_PER_TURN:
                return
            offset = some[-1][1].offset + 1
            yield

    def read_at_once(self) -> None:
        """Replay the whole log, for a shard that no coordinator uses."""
        for _ in self.read():
            pass

    def replay(self, header: BatchHeader, record: Record) -> None:
        """Apply one record of the log."""
        raise NotImplementedError

    def on_loaded(self) -> Iterator[None]:
        """Start the timers in turns, because the log is read."""
        raise NotImplementedError

    def on_unloaded(self) -> None:
        """Clear the state, and answer the requests that wait for other members."""
        raise NotImplementedError

    def unload(self) -> None:
        """Clear the state; the deferred responses become NOT_COORDINATOR."""
        if self.unloaded:
            return
        self.unloaded = True
        self.partition.unwatch(self)
        self.on_unloaded()
        self._timers.clear()
        while self._deferred:
            self._deferred.popleft().complete(ErrorCode.NOT_COORDINATOR)

    def resume(self) -> None:
        """Resume the broker: run the timers that fell due while it was paused."""
        self._timers.resume()

    def partition_changed(self, partition: Partition) -> None:
        """The high watermark, the leader or the log of the partition has changed."""
        if not self.is_current_for(partition):
            self.unload()
            return
        deferred = self._deferred
        while deferred and deferred[0].required_offset <= partition.high_watermark:
            deferred.popleft().complete(NONE)

    # ----------------------------------------------------------------------- writing and waiting

    def write(self, batch: Buffer, now_ms: int) -> tuple[ErrorCode, int]:
        """Append a batch with append time `now_ms`.

        Returns the error for the client and the base offset, -1 after an error.
        """
        error, base_offset = self.append_batch(batch, now_ms)
        if error is not NONE:
            error = APPEND_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
        return error, base_offset

    def append_batch(self, batch: Buffer, now_ms: int) -> tuple[ErrorCode, int]:
        """As `write`, with the error of the append itself."""
        partition = self.partition
        if len(batch) > partition.topic.configs.max_message_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        result = partition.append_records(batch, now_ms, self.acks)
        return ERROR_CODES[result.error], result.base_offset

    @property
    def is_replicated(self) -> bool:
        """Whether the high watermark has passed every record."""
        partition = self.partition
        return partition.high_watermark >= partition.log.end_offset

    def when_replicated(self, then: Callable[[ErrorCode], None], error: ErrorCode = NONE) -> None:
        """Call `then` with NONE once the records written so far are replicated, perhaps now.

        After a timeout or a loss of the leadership it gets that error. An `error` is passed on now.
        """
        if error is not NONE or self.unloaded:
            then(error or ErrorCode.NOT_COORDINATOR)
        elif self.is_replicated:
            then(NONE)
        else:
            deferred = _DeferredEvent(self.partition.log.end_offset, then)
            due_ms = self._runtime.now_ms() + self._configs.get_int(self.timeout_config)
            time_out = partial(self._time_out, deferred)
            deferred.timer = self._runtime.timers.call_at(due_ms, time_out)
            self._deferred.append(deferred)

    def _time_out(self, deferred: _DeferredEvent) -> None:
        self._deferred.remove(deferred)
        deferred.complete(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def stored_records(log: ReplicaLog, offset: int = 0) -> Iterator[tuple[BatchHeader, Record]]:
    """The records of a log from an offset on in their order, each with the header of its batch."""
    first, _ = log.batch_range(offset, offset)
    for index in range(first, log.batch_count):
        batch = log.batch_at(index)
        header = BatchHeader(batch)
        for record in iter_records(header, batch):
            if record.offset >= offset:
                yield header, record
