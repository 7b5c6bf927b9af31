"""The tables of a classic group are total, and agree with each other."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.states import (
    ANSWERS,
    FORBIDDEN,
    HEARTBEAT_ANSWERS,
    TRANSITIONS,
    ClassicGroupState,
    RequestAction,
    RequestKind,
    Trigger,
)
from mockbroker_protocol import ErrorCode


@pytest.mark.parametrize("state", ClassicGroupState)
def test_each_pair_of_state_and_trigger_is_either_a_transition_or_forbidden(
    state: ClassicGroupState,
) -> None:
    assert set(TRANSITIONS[state]) | FORBIDDEN[state] == set(Trigger)
    assert not set(TRANSITIONS[state]) & FORBIDDEN[state]


def test_predecessors_are_those_of_kafka() -> None:
    """ClassicGroupState lists for each state the states it may be entered from."""
    before: dict[ClassicGroupState, set[ClassicGroupState]] = {
        state: set() for state in ClassicGroupState
    }
    for state, row in TRANSITIONS.items():
        for following in row.values():
            before[following].add(state)
    preparing, completing = ClassicGroupState.PREPARING, ClassicGroupState.COMPLETING
    assert before[ClassicGroupState.EMPTY] == {preparing}
    assert before[preparing] == {ClassicGroupState.STABLE, completing, ClassicGroupState.EMPTY}
    assert before[completing] == {preparing}
    assert before[ClassicGroupState.STABLE] == {completing}
    assert before[ClassicGroupState.DEAD] == {
        ClassicGroupState.EMPTY,
        preparing,
        completing,
        ClassicGroupState.STABLE,
    }


@pytest.mark.parametrize("state", ClassicGroupState)
def test_each_state_answers_each_question(state: ClassicGroupState) -> None:
    assert set(ANSWERS[state]) == set(RequestKind)


def test_heartbeats_are_answered_by_an_error_code_in_every_state() -> None:
    assert {
        state: ANSWERS[state][RequestKind.HEARTBEAT] for state in ClassicGroupState
    } == HEARTBEAT_ANSWERS


def test_only_an_empty_group_can_be_deleted() -> None:
    assert [
        s for s in ClassicGroupState if ANSWERS[s][RequestKind.DELETE_GROUP] is ErrorCode.NONE
    ] == [ClassicGroupState.EMPTY]


def test_what_waits_is_answered_by_the_next_phase() -> None:
    """JoinGroup waits while members gather, SyncGroup while the leader assigns, nothing else."""
    waits = {
        (s, a)
        for s in ClassicGroupState
        for a in RequestKind
        if ANSWERS[s][a] is RequestAction.PARK
    }
    assert waits == {
        (ClassicGroupState.PREPARING, RequestKind.JOIN),
        (ClassicGroupState.COMPLETING, RequestKind.SYNC),
    }
