"""The time of one part of a cluster, which may be ahead of the others'.

A test that wants one group's sessions to end, or open transactions to time out, can move that part
alone on: its time is the cluster's plus a *skew*, which only grows. Its timers lie in a heap of
their own, by its own time; one timer of the heap above stands for the earliest of them.
"""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.timing.timers import Timer, TimerHeap


class DomainTimers(TimerHeap):
    """The timers of one part, and its time. Without a skew it is as if they lay in `above`."""

    __slots__ = ("_above", "_above_now_ms", "_wake", "skew_ms")

    def __init__(self, above: TimerHeap, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the time that `above` runs by."""
        super().__init__()
        self._above = above
        self._above_now_ms = now_ms
        self._wake: Timer | None = None
        self.skew_ms = 0
        self.on_earlier = self._arm

    def now_ms(self) -> int:
        """The time of this part, in ms since the epoch."""
        return self._above_now_ms() + self.skew_ms

    def jump_to(self, at_ms: int) -> None:
        """Let it be `at_ms` here, unless it is later already, and run what is due by then."""
        ahead_ms = at_ms - self.now_ms()
        if ahead_ms > 0:
            self.skew_ms += ahead_ms
        if self._wake is not None:
            self._wake.cancel()
        self._run()

    def _arm(self) -> None:
        """Have the heap above call when the earliest timer is due, unless it will earlier."""
        deadline_ms = self.deadline_ms()
        if deadline_ms is None:
            return
        due_ms = deadline_ms - self.skew_ms
        wake = self._wake
        if wake is not None:
            if wake.deadline_ms <= due_ms:
                return
            wake.cancel()
        self._wake = self._above.call_at(due_ms, self._run)

    def _run(self) -> None:
        self._wake = None
        self.run_due(self.now_ms())
        self._arm()


class ClockDomains:
    """The times of one cluster's parts."""

    __slots__ = ("_own", "compaction", "groups", "transactions")

    def __init__(self, timers: TimerHeap, now_ms: Callable[[], int]) -> None:
        """`timers` and `now_ms` are the cluster's."""
        self.groups = DomainTimers(timers, now_ms)
        self.transactions = DomainTimers(timers, now_ms)
        self.compaction = DomainTimers(timers, now_ms)
        # Groups that were moved on alone; they keep their time wherever they are coordinated.
        self._own: dict[str, DomainTimers] = {}

    def of_group(self, group_id: str) -> DomainTimers:
        """The time that a group lives by."""
        return self._own.get(group_id, self.groups)

    def separate_group(self, group_id: str) -> DomainTimers:
        """A time of its own for a group. What it has set so far is to be set anew by its owner."""
        found = self._own.get(group_id)
        if found is None:
            found = self._own[group_id] = DomainTimers(self.groups, self.groups.now_ms)
        return found
