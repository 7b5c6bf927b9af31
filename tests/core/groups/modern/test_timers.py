"""Timers of members: one of a kind, moved and cancelled at will."""

from __future__ import annotations

from mockbroker.core.groups.modern.timers import MemberTimers, SetTimer, TimerKind

SESSION, JOIN = TimerKind.SESSION, TimerKind.JOIN


def ended(timers: MemberTimers, now_ms: int) -> list[tuple[TimerKind, str]]:
    found = []
    while (timer := timers.pop_expired(now_ms)) is not None:
        found.append((timer.kind, timer.member_id))
    return found


def test_timers_end_in_the_order_of_their_deadlines() -> None:
    timers = MemberTimers()
    timers.set(SetTimer(SESSION, "a", 30))
    timers.set(SetTimer(SESSION, "b", 10))
    timers.set(SetTimer(JOIN, "a", 20))
    assert timers.next_ms() == 10
    assert ended(timers, 20) == [(SESSION, "b"), (JOIN, "a")]
    assert ended(timers, 29) == []
    assert ended(timers, 30) == [(SESSION, "a")]
    assert timers.next_ms() is None


def test_a_timer_that_is_set_again_moves() -> None:
    timers = MemberTimers()
    timers.set(SetTimer(SESSION, "a", 10))
    timers.set(SetTimer(SESSION, "a", 20))
    assert ended(timers, 19) == []
    assert ended(timers, 20) == [(SESSION, "a")]
    assert ended(timers, 100) == []


def test_one_that_is_to_be_kept_stays_where_it_is() -> None:
    timers = MemberTimers()
    timers.set(SetTimer(JOIN, "a", 10, keep=True))
    timers.set(SetTimer(JOIN, "a", 20, keep=True))
    assert ended(timers, 10) == [(JOIN, "a")]
    timers.set(SetTimer(JOIN, "a", 30, keep=True))
    assert ended(timers, 30) == [(JOIN, "a")]


def test_a_cancelled_timer_never_ends_and_may_be_set_anew() -> None:
    timers = MemberTimers()
    timers.set(SetTimer(SESSION, "a", 10))
    timers.set(SetTimer(SESSION, "a", None))
    timers.set(SetTimer(SESSION, "nobody", None))
    assert timers.next_ms() is None
    timers.set(SetTimer(SESSION, "a", 15))
    assert ended(timers, 15) == [(SESSION, "a")]


def test_members_that_are_there_are_waited_for_from_where_the_clock_arrives() -> None:
    """Also by a timer that is set on the way, at 60 of 100 here."""
    timers = MemberTimers()
    timers.set(SetTimer(SESSION, "there", 30))
    timers.set(SetTimer(SESSION, "gone", 30))
    timers.extend(lambda member: member == "there", 100, 0)
    timers.now_ms = 60
    timers.set(SetTimer(JOIN, "there", 60 + 20))
    assert ended(timers, 119) == [(SESSION, "gone")]
    assert ended(timers, 130) == [(JOIN, "there"), (SESSION, "there")]


def test_a_timer_says_at_which_epoch_of_its_member_it_counts() -> None:
    timers = MemberTimers()
    for epoch in (7, 8, None):
        timers.set(SetTimer(SESSION, "a", 10, member_epoch=epoch))
        timer = timers.pop_expired(10)
        assert timer is not None
        assert timer.member_epoch == epoch


def test_a_timer_that_was_cancelled_does_not_run_and_is_not_kept() -> None:
    timers = MemberTimers()
    timers.set(SetTimer(JOIN, "a", 10))
    timers.set(SetTimer(JOIN, "a", None))
    timers.set(SetTimer(JOIN, "a", 20, keep=True))
    assert ended(timers, 20) == [(JOIN, "a")]
