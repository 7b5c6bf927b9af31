"""The clock of one clock domain, which may be ahead of the cluster's.

A test can advance one domain to expire a group's sessions or to time out open transactions. The
domain's time is the cluster's plus a *skew*, which never decreases. The domain's timers are in a
heap of their own; one timer of the parent heap runs at the earliest deadline of them.
"""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.timing.timers import Timer, TimerHeap


class DomainTimers(TimerHeap):
    """The timers and the time of one domain."""

    __slots__ = ("_parent", "_parent_now_ms", "_parent_timer", "skew_ms")

    def __init__(self, parent: TimerHeap, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the time of `parent`."""
        super().__init__()
        self._parent = parent
        self._parent_now_ms = now_ms
        self._parent_timer: Timer | None = None
        self.skew_ms = 0
        self.on_earlier = self._arm

    def now_ms(self) -> int:
        """The time of the domain, in ms since the epoch."""
        return self._parent_now_ms() + self.skew_ms

    def jump_to(self, at_ms: int) -> None:
        """Set the time to `at_ms` unless it is later already, and run the timers that are due."""
        ahead_ms = at_ms - self.now_ms()
        if ahead_ms > 0:
            self.skew_ms += ahead_ms
        if self._parent_timer is not None:
            self._parent_timer.cancel()
            self._parent_timer = None
        self.run_timers(self.now_ms())
        self._arm()

    def _arm(self) -> None:
        """Set the parent's timer to the earliest deadline, unless it is set to an earlier time."""
        deadline_ms = self.deadline_ms()
        if deadline_ms is None:
            return
        due_ms = deadline_ms - self.skew_ms
        timer = self._parent_timer
        if timer is not None:
            if timer.deadline_ms <= due_ms:
                return
            timer.cancel()
        self._parent_timer = self._parent.call_at(due_ms, self._run)

    def _run(self) -> None:
        """Run the timers that are due, as many as the parent may still run in this turn."""
        self._parent_timer = None
        parent = self._parent
        parent.left_in_turn += 1  # this one
        parent.left_in_turn -= self.run_timers(self.now_ms(), parent.left_in_turn)
        self._arm()


class ClockDomains:
    """The clock domains of one cluster."""

    __slots__ = ("_separate_groups", "compaction", "groups", "locks", "transactions")

    def __init__(self, timers: TimerHeap, now_ms: Callable[[], int]) -> None:
        """`timers` and `now_ms` are the cluster's."""
        self.groups = DomainTimers(timers, now_ms)
        self.transactions = DomainTimers(timers, now_ms)
        self.compaction = DomainTimers(timers, now_ms)
        self.locks = DomainTimers(timers, now_ms)
        # Groups that were advanced alone keep their domain when their coordinator moves.
        self._separate_groups: dict[str, DomainTimers] = {}

    def all(self) -> list[DomainTimers]:
        """Every domain."""
        named = [self.groups, self.transactions, self.compaction, self.locks]
        return [*named, *self._separate_groups.values()]

    def of_group(self, group_id: str) -> DomainTimers:
        """The domain of a group."""
        return self._separate_groups.get(group_id, self.groups)

    def separate_group(self, group_id: str) -> DomainTimers:
        """The group's own domain, created if needed. The caller must set the timers again."""
        if group_id not in self._separate_groups:
            self._separate_groups[group_id] = DomainTimers(self.groups, self.groups.now_ms)
        return self._separate_groups[group_id]
