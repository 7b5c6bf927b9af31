"""Callbacks at deadlines, and callbacks that only wait for others to have had their turn."""

from __future__ import annotations

from mockbroker.core.timing.timers import SWEEP_MIN, DueTimers, TimerHeap


def test_what_is_to_run_soon_runs_in_the_next_turn_whatever_the_time_is():
    heap, ran = TimerHeap(), []
    heap.call_soon(lambda: ran.append("soon"))
    heap.call_at(1000, lambda: ran.append("at"))
    assert heap.deadline_ms() == 0
    assert heap.run_due(5) == 1
    assert (ran, heap.deadline_ms()) == (["soon"], 1000)


def test_work_that_asks_for_another_turn_gets_one_at_a_time():
    heap, turns = TimerHeap(), []

    def work() -> None:
        turns.append(len(turns))
        if len(turns) < 3:
            heap.call_soon(work)

    heap.call_soon(work)
    for expected in (1, 2, 3):
        assert heap.deadline_ms() == 0
        heap.run_due(0)
        assert len(turns) == expected
    assert heap.deadline_ms() is None
    assert heap.run_due(0) == 0


def test_each_piece_of_work_that_is_to_run_soon_gets_a_turn_of_its_own():
    heap, ran = TimerHeap(), []
    for number in range(3):
        heap.call_soon(lambda number=number: ran.append(number))
    assert heap.run_due(0) == 1
    assert (ran, heap.deadline_ms()) == ([0], 0)
    assert [heap.run_due(0) for _ in range(3)] == [1, 1, 0]
    assert ran == [0, 1, 2]


def test_timers_that_are_due_together_run_in_turns():
    heap, ran = TimerHeap(), []
    for number in range(5):
        heap.call_at(3, lambda number=number: ran.append(number))
    heap.call_at(1, lambda: ran.append("cancelled")).cancel()
    assert heap.run_due(3, 2) == 2
    assert (ran, heap.deadline_ms(), heap.are_due(3)) == ([0, 1], 3, True)
    assert heap.run_timers(3, 2) == 2
    assert heap.run_timers(3, 2) == 1
    assert (ran, heap.are_due(3)) == ([*range(5)], False)


def test_a_cancelled_timer_is_not_due():
    heap = TimerHeap()
    heap.call_at(1, lambda: None).cancel()
    assert not heap.are_due(1)


def test_the_sleeper_is_told_of_what_is_to_run_soon():
    heap, told = TimerHeap(), []
    heap.on_earlier = lambda: told.append(heap.deadline_ms())
    heap.call_at(10, lambda: None)
    heap.call_soon(lambda: None)
    assert told == [10, 0]


def test_timers_set_by_a_timer_run_in_the_same_turn_if_they_are_due():
    heap, ran = TimerHeap(), []
    heap.call_at(1, lambda: heap.call_at(2, lambda: ran.append(2)))
    assert heap.run_due(2) == 2
    assert ran == [2]


def test_nobody_is_called_while_the_process_stands_still_and_everybody_due_afterwards():
    heap, called, paused = TimerHeap(), [], [True]
    timers = DueTimers(lambda: paused[0])
    for key in ("kept", "forgotten"):
        timers.arm(heap, key, 10, called.append)
    heap.run_due(10)
    timers.cancel("forgotten")
    assert called == []
    paused[0] = False
    timers.resume()
    timers.resume()
    assert called == ["kept"]


def test_cancelled_timers_leave_the_heap_while_the_clock_stands_still():
    """With a frozen clock no deadline passes. Live timers keep their order."""
    heap, ran = TimerHeap(), []
    heap.call_at(7, lambda: ran.append("last"))
    heap.call_at(5, lambda: ran.append("first"))
    heap.call_at(5, lambda: ran.append("second"))
    for _ in range(20 * SWEEP_MIN):
        heap.call_at(6, lambda: ran.append("never")).cancel()
    assert len(heap._heap) <= SWEEP_MIN + 1
    heap.run_due(10)
    assert ran == ["first", "second", "last"]


def test_callbacks_may_set_so_many_timers_that_cancelled_ones_are_dropped():
    heap, ran = TimerHeap(), []

    def crowd() -> None:
        for _ in range(2 * SWEEP_MIN):
            heap.call_at(9, lambda: None).cancel()
        heap.call_at(3, lambda: ran.append("new"))

    heap.call_at(1, crowd)
    heap.call_at(4, lambda: ran.append("old"))
    heap.run_due(5)
    assert ran == ["new", "old"]
