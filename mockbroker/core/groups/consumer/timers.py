"""The timers of a consumer group's members, behind one heap (see `groups.lazy_timers`)."""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.groups.consumer.events import SetTimer, TimerKind
from mockbroker.core.groups.lazy_timers import LazyTimer, LazyTimerHeap


class MemberTimer(LazyTimer):
    """One timer of one member; `member_epoch`, if set, is the only epoch at which it counts."""

    __slots__ = ("kind", "member_epoch")

    def __init__(self, kind: TimerKind, member_id: str) -> None:
        super().__init__(member_id)
        self.kind = kind
        self.member_epoch: int | None = None


class MemberTimers:
    """At most one timer of a kind for each member. `now_ms` is the time of the group's event."""

    __slots__ = ("_clock_target_ms", "_heap", "_timers", "now_ms")

    def __init__(self) -> None:
        self._heap = LazyTimerHeap()
        self._timers: dict[tuple[TimerKind, str], MemberTimer] = {}
        self.now_ms = 0
        # Until when the clock is being moved on, for members that are there and cannot keep up.
        self._clock_target_ms = 0

    def set(self, order: SetTimer) -> None:
        """Set, move or cancel a timer."""
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
        """Wait that much longer for the members that are connected, also by timers that are set
        before so much time has passed.
        """
        for (_, member_id), timer in self._timers.items():
            if connected(member_id):
                self._clock_target_ms = now_ms + by_ms
                self._heap.postpone(timer, by_ms)

    def next_ms(self) -> int | None:
        """A time before which no timer ends, or None."""
        return self._heap.next_ms()

    def pop_ended(self, now_ms: int) -> MemberTimer | None:
        """The first timer that has ended by `now_ms`, which thereby is no more."""
        timer = self._heap.pop_ended(now_ms)
        if timer is None:
            return None
        assert isinstance(timer, MemberTimer)
        self._timers.pop((timer.kind, timer.member_id), None)
        return timer
