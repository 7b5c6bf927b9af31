"""What a coordinator knows of one partition of its topic, on the broker that leads it.

A shard writes records to its partition, and what it has to say about them is *deferred*: it is said
when the high watermark has passed all that was written before. As long as followers are caught up
that is so at once. After a while it is given up with COORDINATOR_NOT_AVAILABLE, although the write
may well come to count later; when the leadership is lost meanwhile, with NOT_COORDINATOR.

Source: CoordinatorRuntime with its DeferredEventQueue, TransactionStateManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from mockbroker.core.timers import DueTimers, Timer
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, Record, iter_records
from mockbroker_protocol.records.batch import Buffer

if TYPE_CHECKING:
    from mockbroker.core.coordinator.runtime import CoordinatorRuntime
    from mockbroker.core.log.replica_log import ReplicaLog
    from mockbroker.core.partition import Partition

NONE = ErrorCode.NONE

# What a failed write means to a client (CoordinatorOperationExceptionHelper,
# TransactionStateManager.appendTransactionToLog); others are UNKNOWN_SERVER_ERROR.
APPEND_ERRORS: dict[int, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


C = TypeVar("C", bound="CoordinatorRuntime[Any]")


class _Deferred:
    """What is to be told once the high watermark has reached `required_offset`."""

    __slots__ = ("_then", "required_offset", "timer")

    def __init__(self, required_offset: int, then: Callable[[ErrorCode], None]) -> None:
        self.required_offset = required_offset
        self._then = then
        self.timer: Timer | None = None

    def settle(self, error: ErrorCode) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._then(error)


class CoordinatorShard(Generic[C]):
    """One partition. `loading` until its log is read, `unloaded` when it is of no use any more.

    A subclass says with which `acks` it writes, and by which broker config it gives up waiting.
    """

    __slots__ = (
        "_cluster",
        "_deferred",
        "_log",
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
        self._cluster = coordinator.cluster
        self.partition = partition
        self._log: ReplicaLog = partition.log
        self._timers = DueTimers()
        self._deferred: deque[_Deferred] = deque()
        self.loading = True
        self.unloaded = False
        self.unreadable = 0  # records found while loading that nobody could have written
        partition.watch(self)

    # --------------------------------------------------------------------------- coming and going

    def fits(self, partition: Partition) -> bool:
        """Whether this is still what the leader of the partition has to know."""
        return (
            partition is self.partition
            and partition.leader_id == self.coordinator.broker_id
            and partition.log is self._log
            and not partition.deleted
            and not self.unloaded
        )

    def read(self) -> None:
        """Take in the partition's log, from its beginning to its end."""
        raise NotImplementedError

    def start(self) -> None:
        """The log is read: what is in it begins to live."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Forget what is in the shard, and tell whoever waits for others."""
        raise NotImplementedError

    def unload(self) -> None:
        """Send whoever waits to look for the new coordinator, and let go of everything."""
        if self.unloaded:
            return
        self.unloaded = True
        self.partition.unwatch(self)
        self.let_go()
        self._timers.clear()
        while self._deferred:
            self._deferred.popleft().settle(ErrorCode.NOT_COORDINATOR)

    def partition_changed(self, partition: Partition) -> None:
        """The partition's watcher: replication went on, or it is led by somebody else now."""
        if not self.fits(partition):
            self.unload()
            return
        deferred = self._deferred
        while deferred and deferred[0].required_offset <= partition.high_watermark:
            deferred.popleft().settle(NONE)

    # ----------------------------------------------------------------------- writing and waiting

    def write(self, batch: Buffer) -> tuple[ErrorCode, int]:
        """Append a batch; returns the error a client is to see, and the base offset."""
        partition = self.partition
        if len(batch) > partition.topic.configs.max_message_bytes:
            return ErrorCode.UNKNOWN_SERVER_ERROR, -1
        result = partition.append_records(batch, self._cluster.now_ms(), self.acks)
        if result.error:
            return APPEND_ERRORS.get(result.error, ErrorCode.UNKNOWN_SERVER_ERROR), -1
        return NONE, result.base_offset

    @property
    def is_replicated(self) -> bool:
        """Whether the high watermark has passed all that is written."""
        partition = self.partition
        return partition.high_watermark >= partition.log.end_offset

    def when_replicated(self, then: Callable[[ErrorCode], None], error: ErrorCode = NONE) -> None:
        """Call `then` with NONE when all that is written by now is replicated; that may be at once.

        It gets another error when that takes too long or the leadership is lost, and the `error`
        that is known already at once.
        """
        if error is not NONE or self.unloaded:
            then(error or ErrorCode.NOT_COORDINATOR)
        elif self.is_replicated:
            then(NONE)
        else:
            deferred = _Deferred(self.partition.log.end_offset, then)
            due_ms = self._cluster.now_ms() + self._cluster.config_int(self.timeout_config)
            deferred.timer = self._cluster.timers.call_at(due_ms, partial(self._give_up, deferred))
            self._deferred.append(deferred)

    def _give_up(self, deferred: _Deferred) -> None:
        self._deferred.remove(deferred)
        deferred.settle(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def stored_records(log: ReplicaLog) -> Iterator[tuple[BatchHeader, Record]]:
    """The records of a log in their order, each with the header of its batch."""
    for batch in log.batches():
        header = BatchHeader(batch)
        for record in iter_records(header, batch):
            yield header, record
