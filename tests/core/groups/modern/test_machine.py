"""Events that all newer protocols have: writes, timers, loading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mockbroker.core.groups.events import (
    ConsumerResult,
    HeartbeatResult,
    JoinResult,
    LeaveResult,
    Loaded,
    Reply,
    Result,
    SyncResult,
    Tick,
    Unload,
)
from mockbroker.core.groups.modern.events import GroupChange, MemberChange, Store, Stored
from mockbroker.core.groups.modern.machine import common_handlers, run, submit
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.groups.share.group import ShareGroup, ShareSettings
from mockbroker.core.groups.share.members import ShareMember
from mockbroker.core.groups.streams.results import StreamsResult
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import Topics

FAILED = ErrorCode.NOT_COORDINATOR


class Play:
    """A group with a member, and the members that were fenced."""

    def __init__(self) -> None:
        self.group = ShareGroup("g", ShareSettings(session_timeout_ms=100), Topics(t=1))
        self.group.apply((MemberChange("m", ShareMember(member_id="m")),))
        self.fenced: list[tuple[str, SetTimer]] = []

    def run(self, event: object, now_ms: int = 0) -> list[Any]:
        return run(self.group, common_handlers(self._fence), event, now_ms)

    def _fence(self, _: ShareGroup, member_id: str, retry: SetTimer) -> None:
        self.fenced.append((member_id, retry))


def test_changes_and_timers_count_once_they_are_stored() -> None:
    play = Play()
    answer = Reply("c", ConsumerResult(epoch=7))
    timer = SetTimer(TimerKind.SESSION, "m", 50)
    store = Store(changes=(GroupChange(7, 1),), answer=answer, timers=(timer,))
    assert play.run(Stored(store, ErrorCode.NONE)) == [answer]
    assert (play.group.epoch, play.group.deadline_ms()) == (7, 50)


def test_a_failed_write_changes_nothing_but_the_answer() -> None:
    play = Play()
    store = Store(changes=(GroupChange(7, 1),), answer=Reply("c", ConsumerResult(epoch=7)))
    [answer] = play.run(Stored(store, FAILED))
    assert answer == Reply("c", ConsumerResult(error=FAILED, message=FAILED.message))
    assert play.group.epoch == 1
    assert play.group.compared_metadata_version == -1


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        (JoinResult(error=ErrorCode.NONE, member_id="m"), JoinResult(error=FAILED)),
        (SyncResult(error=ErrorCode.NONE, assignment=b"a"), SyncResult(error=FAILED)),
        (HeartbeatResult(ErrorCode.NONE), HeartbeatResult(FAILED)),
        (LeaveResult(ErrorCode.NONE), LeaveResult(FAILED)),
        (StreamsResult(epoch=3), StreamsResult(error=FAILED, message=FAILED.message)),
    ],
)
def test_each_request_has_its_answer_to_a_failed_write(result: Result, failed: Result) -> None:
    store = Store(changes=(GroupChange(7),), answer=Reply("c", result))
    assert Play().run(Stored(store, FAILED)) == [Reply("c", failed)]


def test_a_timer_whose_write_failed_runs_again_after_half_a_second() -> None:
    play = Play()
    store = Store(changes=(GroupChange(7),), retry=SetTimer(TimerKind.SESSION, "m", 10))
    assert play.run(Stored(store, FAILED), now_ms=10) == []
    assert play.group.deadline_ms() == 510


def test_nothing_is_stored_without_changes() -> None:
    play = Play()
    answer = Reply("c", ConsumerResult())
    submit(play.group, Store(changes=(), answer=answer, timers=(_session(20),)))
    assert play.group.effects == [answer]
    assert play.group.deadline_ms() == 20


def test_with_changes_the_answer_waits_for_the_log() -> None:
    play = Play()
    store = Store(changes=(GroupChange(7),), answer=Reply("c", ConsumerResult()))
    submit(play.group, store)
    assert play.group.effects == [store]


def test_a_member_is_fenced_when_its_timer_expires() -> None:
    play = Play()
    play.group.timers.set(_session(20))
    play.run(Tick(), now_ms=19)
    assert play.fenced == []
    play.run(Tick(), now_ms=20)
    assert play.fenced == [("m", _session(20))]


@pytest.mark.parametrize("order", [lambda: _session(20, member="gone"), lambda: _session(20, 5)])
def test_a_timer_of_a_former_member_or_epoch_fences_nobody(order: Callable[[], SetTimer]) -> None:
    play = Play()
    play.group.timers.set(order())
    play.run(Tick(), now_ms=20)
    assert play.fenced == []


def test_sessions_begin_anew_when_the_group_is_loaded() -> None:
    play = Play()
    play.run(Loaded(), now_ms=1_000)
    assert play.group.deadline_ms() == 1_100


def test_an_unloaded_group_is_dead() -> None:
    play = Play()
    assert play.run(Unload()) == []
    assert play.group.dead


def _session(deadline_ms: int, epoch: int | None = None, member: str = "m") -> SetTimer:
    return SetTimer(TimerKind.SESSION, member, deadline_ms, epoch)
