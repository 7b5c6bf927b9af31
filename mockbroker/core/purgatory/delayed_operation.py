"""A request that waits for a change of a partition, at most until its timeout.

The keys of an operation are partitions, and share partitions for a share fetch. A change of a
watermark, a leader or a log end runs `try_complete` on the operations of the partition. An
operation completes once: by `try_complete`, on its expiration, or by `force_complete`.

Source: org.apache.kafka.server.purgatory.DelayedOperation, DelayedOperationPurgatory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import Timer, TimerHeap


class Watchable(Protocol):
    """A key of operations: a partition, or a share partition."""

    def watch(self, watcher: DelayedOperation) -> None:
        """Call `partition_changed` of `watcher` with each change."""
        ...

    def unwatch(self, watcher: DelayedOperation) -> None: ...


class DelayedOperation(ABC):
    """One request. `is_completed` is set before `on_complete` runs; other modules only read it."""

    __slots__ = ("_keys", "_timer", "is_completed")

    def __init__(self) -> None:
        self.is_completed = False
        self._keys: Collection[Watchable] = ()
        self._timer: Timer | None = None

    def watch(self, keys: Collection[Watchable], timers: TimerHeap, deadline_ms: int) -> None:
        """Wait for a change of `keys`, until `deadline_ms` (ms since the epoch).

        `try_complete` first runs after a change.
        """
        self.watch_instead(keys)
        self._timer = timers.call_at(deadline_ms, self.expire)

    def watch_instead(self, keys: Collection[Watchable]) -> None:
        """Wait for a change of these keys in place of the former ones."""
        for key in self._keys:
            key.unwatch(self)
        self._keys = keys
        for key in keys:
            key.watch(self)

    # -- implemented by each operation -----------------------------------------------------------

    @abstractmethod
    def try_complete(self, changed: Partition) -> None:
        """Run `force_complete` if the change of `changed`, one of the keys, ends the wait."""

    @abstractmethod
    def on_complete(self) -> None:
        """Send the response. Called once."""

    def on_expiration(self) -> None:  # noqa: B027
        """Put the timeout into the response: before `on_complete`, and only on expiration.

        (Kafka calls it after `on_complete`, for its metrics.)
        """

    # -- completion ------------------------------------------------------------------------------

    def force_complete(self) -> None:
        """Complete the operation; a second call has no effect."""
        if self.is_completed:
            return
        self.is_completed = True
        for key in self._keys:
            key.unwatch(self)
        if self._timer is not None:
            self._timer.cancel()
        self.on_complete()

    def expire(self) -> None:
        """Complete the operation with its timeout."""
        if not self.is_completed:
            self.on_expiration()
            self.force_complete()

    def partition_changed(self, partition: Partition) -> None:
        """One of the keys has changed."""
        # Another watcher of the same change may have completed this operation.
        if not self.is_completed:
            self.try_complete(partition)
