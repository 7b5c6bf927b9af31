"""Operations that wait until other replicas have the leader's records.

Each partition gets its own error code; the last one completes the operation. On expiration the
other partitions get REQUEST_TIMED_OUT.

Source: DelayedProduce, DelayedDeleteRecords.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mockbroker.core.purgatory.delayed_operation import DelayedOperation
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import TimerHeap

REQUEST_TIMED_OUT = int(ErrorCode.REQUEST_TIMED_OUT)


class PartitionStatus(Protocol):
    """The wait of an operation for one partition."""

    @property
    def partition(self) -> Partition: ...


W = TypeVar("W", bound=PartitionStatus)


class DelayedReplication(DelayedOperation, Generic[W]):
    """`waiting` has one or more entries for each partition without an error code."""

    __slots__ = ("_waiting",)

    def __init__(self, waiting: list[W]) -> None:
        super().__init__()
        self._waiting = waiting

    def start(self, timers: TimerHeap, deadline_ms: int) -> None:
        """Wait for the partitions until `deadline_ms`; without partitions, complete now."""
        if self._waiting:
            keys = dict.fromkeys(each.partition for each in self._waiting)
            self.watch(keys, timers, deadline_ms)
        else:
            self.force_complete()

    @abstractmethod
    def error_of(self, wait: W) -> int | None:
        """The error code of an entry, or None while it waits."""

    @abstractmethod
    def set_error(self, wait: W, error: int) -> None:
        """Put an error code, 0 for success, into the response."""

    def try_complete(self, changed: Partition) -> None:
        remaining: list[W] = []
        still_waits = False
        for each in self._waiting:
            if each.partition is not changed:
                remaining.append(each)
                continue
            error = self.error_of(each)
            if error is None:
                remaining.append(each)
                still_waits = True
            else:
                self.set_error(each, error)
        self._waiting = remaining
        if not still_waits:
            changed.unwatch(self)
        if not self._waiting:
            self.force_complete()

    def on_expiration(self) -> None:
        for each in self._waiting:
            self.set_error(each, REQUEST_TIMED_OUT)
