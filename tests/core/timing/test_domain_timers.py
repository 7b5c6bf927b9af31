"""One part of a cluster may be ahead of the others; its timers go by its own time."""

from __future__ import annotations

from mockbroker.core.timing.domain_timers import DomainTimers
from mockbroker.core.timing.timers import TimerHeap


class Clock:
    """The time that the heap above runs by."""

    def __init__(self) -> None:
        self.now_ms = 1000
        self.heap = TimerHeap()
        self.part = DomainTimers(self.heap, lambda: self.now_ms)
        self.ran: list[tuple[str, int]] = []

    def set(self, name: str, at_ms: int):
        return self.part.call_at(at_ms, lambda: self.ran.append((name, self.part.now_ms())))

    def pass_until(self, at_ms: int) -> None:
        while (due_ms := self.heap.deadline_ms()) is not None and due_ms <= at_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.heap.run_due(self.now_ms)
        self.now_ms = at_ms


def test_without_a_skew_timers_run_as_if_they_were_in_the_heap_above():
    clock = Clock()
    clock.set("late", 1020)
    clock.set("early", 1010)
    clock.set("cancelled", 1005).cancel()
    clock.pass_until(1019)
    assert clock.ran == [("early", 1010)]
    clock.pass_until(1020)
    assert clock.ran == [("early", 1010), ("late", 1020)]
    assert clock.heap.deadline_ms() is None


def test_a_jump_runs_what_is_due_in_this_part_alone():
    clock = Clock()
    elsewhere = []
    clock.heap.call_at(1010, lambda: elsewhere.append(clock.now_ms))
    clock.set("here", 1010)
    clock.part.jump_to(1050)
    assert clock.ran == [("here", 1050)]
    assert elsewhere == []
    assert (clock.now_ms, clock.part.now_ms()) == (1000, 1050)


def test_what_is_not_due_yet_has_less_time_left():
    clock = Clock()
    clock.set("here", 1100)
    clock.part.jump_to(1060)
    assert clock.part.deadline_ms() == 1100
    assert clock.heap.deadline_ms() == 1040
    clock.pass_until(1040)
    assert clock.ran == [("here", 1100)]


def test_what_is_set_after_a_jump_takes_as_long_as_ever():
    clock = Clock()
    clock.part.jump_to(5000)
    clock.set("here", clock.part.now_ms() + 30)
    clock.pass_until(1029)
    assert clock.ran == []
    clock.pass_until(1030)
    assert clock.ran == [("here", 5030)]


def test_time_never_goes_back():
    clock = Clock()
    clock.part.jump_to(5000)
    clock.part.jump_to(3000)
    assert clock.part.now_ms() == 5000


def test_a_part_of_a_part_is_ahead_by_both():
    clock = Clock()
    inner = DomainTimers(clock.part, clock.part.now_ms)
    ran = []
    inner.call_at(1100, lambda: ran.append(inner.now_ms()))
    inner.jump_to(1050)
    clock.part.jump_to(1040)
    assert inner.now_ms() == 1090
    clock.pass_until(1010)
    assert ran == [1100]


def test_timers_of_a_part_count_in_the_turn_of_the_heap_above():
    clock = Clock()
    inner = DomainTimers(clock.part, clock.part.now_ms)
    for number in range(3):
        clock.set(f"part {number}", 1010)
        inner.call_at(1010, lambda number=number: clock.ran.append((f"inner {number}", 1010)))
    clock.heap.call_at(1010, lambda: clock.ran.append(("above", 1010)))
    clock.now_ms = 1010
    turns = []
    while clock.heap.are_due(1010):
        before = len(clock.ran)
        clock.heap.run_due(1010, 2)
        turns.append(len(clock.ran) - before)
    assert max(turns) == 2
    assert sum(turns) == len(set(clock.ran)) == 7
    assert clock.heap.deadline_ms() is None
