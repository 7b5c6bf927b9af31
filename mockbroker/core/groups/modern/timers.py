"""The timers of a group's members, behind one heap (see `groups.lazy_timers`)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from mockbroker.core.groups.lazy_timers import LazyTimer, LazyTimerHeap


class TimerKind(Enum):
    """Why a member may be fenced. Each member has at most one timer of a kind."""

    SESSION = "no heartbeat within its session timeout"
    REBALANCE = "no revocation within its rebalance timeout"
    JOIN = "no JoinGroup of a classic member in time"
    SYNC = "no SyncGroup of a classic member in time"


class SetTimer(msgspec.Struct, frozen=True):
    """Set a timer of a member to `deadline_ms`, or cancel it (None).

    With `member_epoch` the timer counts only while the member is at that epoch. With `keep` a timer
    that runs is not changed.
    """

    kind: TimerKind
    member_id: str
    deadline_ms: int | None
    member_epoch: int | None = None
    keep: bool = False


class MemberTimer(LazyTimer):
    """One timer of one member. If `member_epoch` is set, it is ignored at other member epochs."""

    __slots__ = ("kind", "member_epoch")

    def __init__(self, kind: TimerKind, member_id: str) -> None:
        super().__init__(member_id)
        self.kind = kind
        self.member_epoch: int | None = None


class MemberTimers:
    """At most one timer of each kind for each member. `now_ms` is the time of the current event."""

    __slots__ = ("_clock_target_ms", "_heap", "_timers", "now_ms")

    def __init__(self) -> None:
        self._heap = LazyTimerHeap()
        self._timers: dict[tuple[TimerKind, str], MemberTimer] = {}
        self.now_ms = 0
        # The target of a clock advance: connected members' timers armed before it start there.
        self._clock_target_ms = 0

    def set(self, order: SetTimer) -> None:
        """Arm, re-arm or cancel a timer."""
        key = (order.kind, order.member_id)
        timer = self._timers.get(key)
        if order.deadline_ms is None:
            if timer is not None:
                self._heap.cancel(timer)
                del self._timers[key]
            return
        if timer is None:
            timer = self._timers[key] = MemberTimer(order.kind, order.member_id)
        elif order.keep:
            return
        timer.member_epoch = order.member_epoch
        self._heap.arm(timer, order.deadline_ms + max(self._clock_target_ms - self.now_ms, 0))

    def extend(self, connected: Callable[[str], bool], by_ms: int, now_ms: int) -> None:
        """Extend the timers of connected members by `by_ms`, also those armed during the
        advance.
        """
        for (_, member_id), timer in self._timers.items():
            if connected(member_id):
                self._clock_target_ms = now_ms + by_ms
                self._heap.postpone(timer, by_ms)

    def next_ms(self) -> int | None:
        """A time before which no timer expires, or None without timers."""
        return self._heap.next_ms()

    def pop_expired(self, now_ms: int) -> MemberTimer | None:
        """Remove and return the first timer that has expired by `now_ms`, or None."""
        timer = self._heap.pop_expired(now_ms)
        if timer is None:
            return None
        assert isinstance(timer, MemberTimer)
        self._timers.pop((timer.kind, timer.member_id), None)
        return timer
