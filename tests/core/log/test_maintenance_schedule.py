"""Rounds take place on a grid of times, for those that were noted, and not at all for nobody."""

from __future__ import annotations

from typing import Any

from mockbroker.core.log.maintenance_schedule import STALE_ENTRIES_MAX, MaintenanceSchedule
from mockbroker.core.timing.timers import TimerHeap


class Someone:
    """Stands for a partition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.deleted = False


class World:
    def __init__(self, first_ms: int = 30, interval_ms: int = 100) -> None:
        self.now_ms = 0
        self.interval_ms = interval_ms
        self.timers = TimerHeap()
        self.visits: list[tuple[int, list[str]]] = []
        self.rounds: Any = MaintenanceSchedule(
            self.timers, lambda: self.now_ms, first_ms, lambda: self.interval_ms, self._visit
        )

    def _visit(self, partitions: Any, now_ms: int) -> None:
        self.visits.append((now_ms, [each.name for each in partitions]))

    def advance(self, to_ms: int) -> None:
        """Step from deadline to deadline."""
        while (deadline := self.timers.deadline_ms()) is not None and deadline <= to_ms:
            self.now_ms = max(deadline, self.now_ms)
            self.timers.run_due(self.now_ms)
        self.now_ms = to_ms


def test_without_anyone_noted_there_is_no_timer():
    world = World()
    assert world.timers.deadline_ms() is None


def test_those_noted_are_visited_together_in_the_next_round_and_only_then():
    world = World()
    a, b = Someone("a"), Someone("b")
    world.now_ms = 35
    world.rounds.schedule(a, 35)
    world.now_ms = 50
    world.rounds.schedule(b, 50)
    world.rounds.schedule(a, 50)
    world.advance(1000)
    assert world.visits == [(130, ["a", "b"])]
    assert world.timers.deadline_ms() is None


def test_the_first_round_is_not_before_its_time():
    world = World(first_ms=500)
    world.rounds.schedule(Someone("a"), 0)
    world.advance(1000)
    assert world.visits == [(500, ["a"])]


def test_a_round_that_is_over_is_not_held_again():
    world = World()
    world.now_ms = 130
    world.rounds.schedule(Someone("a"), 130)
    world.advance(1000)
    assert world.visits == [(230, ["a"])]


def test_someone_noted_for_later_is_visited_in_the_first_round_after_that():
    world = World()
    world.rounds.schedule(Someone("a"), 7_000_001)
    world.rounds.schedule(Someone("b"), 300)
    world.advance(10_000_000)
    assert world.visits == [(330, ["b"]), (7_000_030, ["a"])]


def test_the_earliest_time_noted_for_someone_counts():
    world = World()
    a = Someone("a")
    world.rounds.schedule(a, 900)
    world.rounds.schedule(a, 200)
    world.rounds.schedule(a, 500)
    world.advance(2000)
    assert world.visits == [(230, ["a"])]


def test_those_who_are_gone_by_then_are_left_out():
    world = World()
    a, b = Someone("a"), Someone("b")
    world.rounds.schedule(a, 0)
    world.rounds.schedule(b, 0)
    a.deleted = True
    world.advance(100)
    assert world.visits == [(30, ["b"])]


def test_a_jump_over_many_rounds_is_one_visit():
    world = World()
    world.rounds.schedule(Someone("a"), 0)
    world.now_ms = 10**9
    world.timers.run_due(world.now_ms)
    assert world.visits == [(10**9, ["a"])]


def test_a_changed_interval_counts_from_the_next_note_on():
    world = World(first_ms=0, interval_ms=1000)
    world.rounds.schedule(Someone("a"), 5)
    world.interval_ms = 10
    world.rounds.schedule(Someone("b"), 5)
    world.advance(999)
    assert world.visits == [(10, ["a", "b"])]


def test_someone_may_be_noted_anew_while_visited():
    world = World()
    a = Someone("a")
    visits = []

    def visit(partitions: Any, now_ms: int) -> None:
        visits.append(now_ms)
        if now_ms < 300:
            world.rounds.schedule(a, now_ms)

    world.rounds._visit = visit
    world.rounds.schedule(a, 0)
    world.advance(1000)
    assert visits == [30, 130, 230, 330]


def test_notes_that_were_overtaken_do_not_pile_up():
    world = World()
    a, b = Someone("a"), Someone("b")
    world.rounds.schedule(b, 10**9)
    for number in range(10_000):
        world.rounds.schedule(a, 10**8 - number)
    assert len(world.rounds._heap) <= 2 * 2 + STALE_ENTRIES_MAX + 1
    world.advance(10**9 + 100)
    assert [names for _, names in world.visits] == [["a"], ["b"]]


def test_with_an_interval_of_0_there_is_a_round_in_each_millisecond():
    world = World(first_ms=0, interval_ms=0)
    world.rounds.schedule(Someone("a"), 5)
    world.rounds.schedule(Someone("b"), 7)
    world.advance(10)
    assert world.visits == [(5, ["a"]), (7, ["b"])]


def test_notes_that_were_overtaken_are_at_most_as_many_as_those_that_count():
    world = World()
    many = [Someone(str(number)) for number in range(200)]
    for at_ms in range(10, 0, -1):
        for each in many:
            world.rounds.schedule(each, at_ms)
            assert len(world.rounds._heap) <= 2 * len(many) + STALE_ENTRIES_MAX
    world.advance(100)
    assert [len(names) for _, names in world.visits] == [len(many)]
