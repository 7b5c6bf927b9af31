"""Operations that wait until other replicas have the leader's records.

Each partition gets its error code by itself; the last one completes the operation. On expiration
the others get REQUEST_TIMED_OUT.

Source: DelayedProduce, DelayedDeleteRecords.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mockbroker.core.purgatory.delayed_operation import DelayedOperation
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import Timer

REQUEST_TIMED_OUT = int(ErrorCode.REQUEST_TIMED_OUT)


class OfPartition(Protocol):
    """The wait of an operation for one partition."""

    @property
    def partition(self) -> Partition: ...


W = TypeVar("W", bound=OfPartition)


class DelayedReplication(DelayedOperation, Generic[W]):
    """`waiting` has one entry or several for each partition without an error code yet."""

    __slots__ = ("_waiting",)

    def __init__(self, waiting: list[W]) -> None:
        super().__init__()
        self._waiting = waiting

    def start(
        self, set_timer: Callable[[int, Callable[[], None]], Timer], deadline_ms: int
    ) -> None:
        """Wait for the partitions, at most until `deadline_ms`; without any, complete at once."""
        if self._waiting:
            keys = dict.fromkeys(each.partition for each in self._waiting)
            self.watch(keys, set_timer, deadline_ms)
        else:
            self.force_complete()

    @abstractmethod
    def error_of(self, waits: W) -> int | None:
        """The error code of an entry, or None while it waits."""

    @abstractmethod
    def set_error(self, waits: W, error: int) -> None:
        """Put an error code, 0 for success, into the response."""

    def try_complete(self, moved: Partition) -> None:
        left: list[W] = []
        waits_on = False
        for each in self._waiting:
            if each.partition is not moved:
                left.append(each)
                continue
            error = self.error_of(each)
            if error is None:
                left.append(each)
                waits_on = True
            else:
                self.set_error(each, error)
        self._waiting = left
        if not waits_on:
            moved.unwatch(self)
        if not self._waiting:
            self.force_complete()

    def on_expiration(self) -> None:
        for each in self._waiting:
            self.set_error(each, REQUEST_TIMED_OUT)
