"""Steps of a heartbeat that all newer protocols have."""

from __future__ import annotations

from mockbroker.core.groups.modern.events import TargetAssignmentChange, TargetEpochChange
from mockbroker.core.groups.modern.heartbeat import (
    heartbeat_result,
    in_unknown_state,
    rebalance_timer,
    session_timer,
    target_changes,
    updated_member,
)
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.groups.share.group import ShareGroup, ShareSettings
from mockbroker.core.groups.share.members import ShareMember
from mockbroker.core.groups.streams.group import StreamsGroup, StreamsSettings
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.states import MemberState
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import Topics

T = b"t" * 16
ZERO = {T: frozenset({0})}
MEMBER = ShareMember(member_id="m", client_id="c", epoch=2)


def new_group() -> ShareGroup:
    return ShareGroup("g", ShareSettings(session_timeout_ms=100), Topics(t=1))


def test_a_heartbeat_changes_only_what_it_has() -> None:
    assert updated_member(MEMBER, {"client_id": "d", "rack_id": None}).client_id == "d"
    assert updated_member(MEMBER, {"client_id": "c", "rack_id": None}) is MEMBER


def test_only_targets_that_differ_are_stored() -> None:
    group = new_group()
    group.targets = {"a": ZERO, "b": ZERO, "c": {}}
    changes = target_changes(group, ["a", "b", "c", "d"], {"a": ZERO}, {}, 5, 700)
    assert changes == [
        TargetAssignmentChange("b", {}),
        TargetAssignmentChange("d", {}),
        TargetEpochChange(5, 700),
    ]


def test_a_session_lasts_from_the_heartbeat() -> None:
    assert session_timer(new_group(), "m", 50) == SetTimer(TimerKind.SESSION, "m", 150)


def test_the_rebalance_timer_runs_while_something_must_be_revoked() -> None:
    group = StreamsGroup("g", StreamsSettings(), Topics(t=1))
    stable = StreamsMember(member_id="m", epoch=3, rebalance_timeout_ms=40)
    assert rebalance_timer(group, stable, 10) == SetTimer(TimerKind.REBALANCE, "m", None)
    revoking = StreamsMember(
        member_id="m", epoch=3, rebalance_timeout_ms=40, state=MemberState.UNREVOKED
    )
    assert rebalance_timer(group, revoking, 10) == SetTimer(TimerKind.REBALANCE, "m", 50, 3)


def test_an_answer_has_the_assignment_if_it_changed_or_was_asked_for() -> None:
    group = new_group()
    after = ShareMember(member_id="m", epoch=3, assigned=ZERO)
    assert heartbeat_result(group, MEMBER, after, full=False).assignment == {T: (0,)}
    assert heartbeat_result(group, after, after, full=True).assignment == {T: (0,)}
    unchanged = heartbeat_result(group, after, after, full=False)
    assert (unchanged.assignment, unchanged.epoch, unchanged.member_id) == (None, 3, "m")
    assert unchanged.heartbeat_interval_ms == group.settings.heartbeat_interval_ms


def test_a_member_in_an_unknown_state_joins_again() -> None:
    error = in_unknown_state("streams", "tasks")
    assert error.error is ErrorCode.FENCED_MEMBER_EPOCH
    assert "abandon all its tasks and rejoin" in str(error.message)
