"""Timers, leaving and writes of a streams group."""

from __future__ import annotations

from mockbroker.core.groups.events import Loaded, Unload
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.states import StreamsGroupState
from mockbroker_protocol import ErrorCode
from tests.support.streams_playbook import REBALANCE_MS, SETTINGS, StreamsPlay, reading

T = reading("t")


def shared() -> StreamsPlay:
    """Two members with two tasks each."""
    play = StreamsPlay(t=4)
    play.join("a", T)
    play.join("b", T)
    play.settle("a", "b")
    return play


def test_a_member_that_leaves_frees_its_tasks() -> None:
    play = shared()
    answer = play.leave("b")
    assert (answer.error, answer.epoch, answer.assigned) == (ErrorCode.NONE, -1, None)
    play.settle("a")
    assert play.active("a") == {"0": [0, 1, 2, 3]}
    assert play.leave("b").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_after_its_session_timeout() -> None:
    play = shared()
    play.now_ms += SETTINGS.session_timeout_ms - 1
    play.own_all("a")
    play.advance(1)
    assert list(play.group.members) == ["a"]


def test_a_member_that_does_not_revoke_is_removed_after_its_rebalance_timeout() -> None:
    play = StreamsPlay(t=4)
    play.join("a", T)
    play.join("b", T)
    held = {"0": [0, 1, 2, 3]}
    play.beat("a", None, held)
    for _ in range(REBALANCE_MS // 20_000):
        play.now_ms += 20_000
        play.beat("a", None, held)
        play.own_all("b")
    play.advance(0)
    assert list(play.group.members) == ["b"]


def test_a_revocation_in_time_cancels_the_rebalance_timeout() -> None:
    play = StreamsPlay(t=4)
    play.join("a", T)
    play.join("b", T)
    play.beat("a", None, {"0": [0, 1, 2, 3]})
    play.settle("a", "b")
    play.now_ms += 30_000
    play.settle("a", "b")
    play.advance(31_000)
    assert list(play.group.members) == ["a", "b"]


def test_a_removal_that_cannot_be_written_is_tried_again() -> None:
    play = shared()
    play.error = ErrorCode.NOT_ENOUGH_REPLICAS
    play.advance(SETTINGS.session_timeout_ms)
    assert len(play.group.members) == 2
    play.error = ErrorCode.NONE
    play.advance(500)
    play.advance(0)
    assert not play.group.members


def test_the_same_changes_make_the_same_group_again() -> None:
    play = shared()
    again = StreamsGroup("g", SETTINGS, play.topics)
    again.apply(play.stored)
    assert again.members == play.group.members
    assert again.targets == play.group.targets
    assert (again.epoch, again.state) == (play.group.epoch, StreamsGroupState.STABLE)
    assert again.topology == play.group.topology


def test_loading_starts_the_sessions() -> None:
    play = shared()
    again = StreamsPlay(t=4)
    again.group.apply(play.stored)
    assert again.group.deadline_ms() is None
    again.play(Loaded())
    again.advance(SETTINGS.session_timeout_ms)
    again.advance(0)
    assert not again.group.members


def test_tombstones_leave_nothing() -> None:
    play = shared()
    play.group.apply(play.group.tombstones())
    assert play.group.state is StreamsGroupState.DEAD
    assert (play.group.members, play.group.targets, play.group.topology) == ({}, {}, None)
    assert play.group.owners.lookups().active("0", 0) is None


def test_an_unloaded_group_is_dead() -> None:
    play = shared()
    play.play(Unload())
    assert play.group.state is StreamsGroupState.DEAD
