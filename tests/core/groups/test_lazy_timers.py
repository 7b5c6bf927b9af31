"""Sessions end when they should, and renewing them moves nothing in the heap."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.groups.lazy_timers import LazyTimer, LazyTimerHeap


def ended(heap: LazyTimerHeap, now_ms: int) -> list[str]:
    names = []
    while (timer := heap.pop_expired(now_ms)) is not None:
        names.append(timer.member_id)
    return names


def test_a_lease_ends_at_its_deadline_and_only_once() -> None:
    heap, timer = LazyTimerHeap(), LazyTimer("a")
    heap.arm(timer, 100)
    assert ended(heap, 99) == []
    assert ended(heap, 100) == ["a"]
    assert ended(heap, 1000) == []
    assert heap.next_ms() is None


def test_renewing_costs_no_heap_operation_until_the_old_deadline_comes_up() -> None:
    heap, timer = LazyTimerHeap(), LazyTimer("a")
    for now_ms in (0, *range(0, 90, 10)):
        heap.arm(timer, now_ms + 100)
    assert len(heap._heap) == 1
    assert heap.next_ms() == 100  # a lower bound: the timer itself ends at 180
    assert ended(heap, 100) == []
    assert heap.next_ms() == 180
    assert ended(heap, 180) == ["a"]


def test_an_earlier_deadline_is_kept() -> None:
    """A session timeout may become shorter when a member joins again."""
    heap, timer = LazyTimerHeap(), LazyTimer("a")
    heap.arm(timer, 300)
    heap.arm(timer, 50)
    assert heap.next_ms() == 50
    assert ended(heap, 50) == ["a"]
    assert ended(heap, 300) == []


def test_a_cancelled_lease_does_not_end() -> None:
    heap, timer = LazyTimerHeap(), LazyTimer("a")
    heap.arm(timer, 100)
    heap.cancel(timer)
    assert heap.next_ms() is None
    assert ended(heap, 100) == []


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("aac"), st.integers(1, 50)), max_size=60)
)
def test_leases_end_as_in_a_model_without_a_heap(steps: list[tuple[int, str, int]]) -> None:
    """Any mixture of arming, cancelling and time: the same leases have ended."""
    heap = LazyTimerHeap()
    leases = [LazyTimer(str(i)) for i in range(5)]
    model: dict[str, int] = {}
    now_ms = 0
    for index, action, amount in steps:
        timer = leases[index]
        if action == "a":
            heap.arm(timer, now_ms + amount)
            model[timer.member_id] = now_ms + amount
        else:
            heap.cancel(timer)
            model.pop(timer.member_id, None)
        now_ms += amount // 5
        over = {name for name, deadline_ms in model.items() if deadline_ms <= now_ms}
        assert set(ended(heap, now_ms)) == over
        for name in over:
            del model[name]
        bound = heap.next_ms()
        assert (bound is None) == (not model)
        assert bound is None or bound <= min(model.values())


def test_timers_that_come_and_go_while_the_clock_stands_still_leave_no_entries() -> None:
    """A live timer stays among them, with the deadline that it was given last."""
    heap, live = LazyTimerHeap(), LazyTimer("live")
    heap.arm(live, 100)
    heap.arm(live, 200)
    for number in range(2000):
        timer = LazyTimer(f"{number}")
        heap.arm(timer, 150)
        heap.cancel(timer)
    assert len(heap) <= 101
    assert ended(heap, 199) == []
    assert ended(heap, 200) == ["live"]


def test_a_cancelled_timer_whose_entry_was_dropped_can_be_armed_again() -> None:
    heap, again = LazyTimerHeap(), LazyTimer("again")
    heap.arm(again, 100)
    heap.cancel(again)
    for number in range(101):
        heap.arm(LazyTimer(f"{number}"), 1000)
    heap.arm(again, 100)
    assert ended(heap, 100) == ["again"]


@pytest.mark.parametrize(("live", "most"), [(0, 101), (40, 101), (200, 401)])
def test_cancelled_timers_are_half_of_the_entries_at_most_and_a_hundred_in_any_case(
    live: int, most: int
) -> None:
    """So that dropping them costs little for each of them."""
    heap, lengths = LazyTimerHeap(), []
    for number in range(live):
        heap.arm(LazyTimer(f"{number}"), 1000)
    for _ in range(2000):
        timer = LazyTimer("gone")
        heap.arm(timer, 1000)
        lengths.append(len(heap))
        heap.cancel(timer)
    assert max(lengths) == most


@pytest.mark.parametrize("seed", range(5))
def test_timers_end_in_order_after_others_among_them_were_dropped(seed: int) -> None:
    heap, random = LazyTimerHeap(), Random(seed)
    timers = {random.randrange(10_000): LazyTimer("") for _ in range(300)}
    for deadline_ms, timer in timers.items():
        heap.arm(timer, deadline_ms)
        if random.random() < 0.5:
            heap.cancel(timer)
    for deadline_ms in sorted(timers):
        live = timers[deadline_ms].deadline_ms is not None
        assert len(ended(heap, deadline_ms)) == live
