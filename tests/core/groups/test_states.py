"""The tables of a classic group are total, and agree with each other."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.states import (
    ANSWERS,
    FORBIDDEN,
    HEARTBEAT_ANSWERS,
    TRANSITIONS,
    RequestAction,
    RequestKind,
    State,
    Trigger,
)
from mockbroker_protocol import ErrorCode


@pytest.mark.parametrize("state", State)
def test_each_pair_of_state_and_trigger_is_either_a_transition_or_forbidden(state: State) -> None:
    assert set(TRANSITIONS[state]) | FORBIDDEN[state] == set(Trigger)
    assert not set(TRANSITIONS[state]) & FORBIDDEN[state]


def test_predecessors_are_those_of_kafka() -> None:
    """ClassicGroupState lists for each state the states it may be entered from."""
    before: dict[State, set[State]] = {state: set() for state in State}
    for state, row in TRANSITIONS.items():
        for following in row.values():
            before[following].add(state)
    preparing, completing = State.PREPARING, State.COMPLETING
    assert before[State.EMPTY] == {preparing}
    assert before[preparing] == {State.STABLE, completing, State.EMPTY}
    assert before[completing] == {preparing}
    assert before[State.STABLE] == {completing}
    assert before[State.DEAD] == {State.EMPTY, preparing, completing, State.STABLE}


@pytest.mark.parametrize("state", State)
def test_each_state_answers_each_question(state: State) -> None:
    assert set(ANSWERS[state]) == set(RequestKind)


def test_heartbeats_are_answered_by_an_error_code_in_every_state() -> None:
    assert {state: ANSWERS[state][RequestKind.HEARTBEAT] for state in State} == HEARTBEAT_ANSWERS


def test_only_an_empty_group_can_be_deleted() -> None:
    assert [s for s in State if ANSWERS[s][RequestKind.DELETE_GROUP] is ErrorCode.NONE] == [
        State.EMPTY
    ]


def test_what_waits_is_answered_by_the_next_phase() -> None:
    """JoinGroup waits while members gather, SyncGroup while the leader assigns, nothing else."""
    waits = {(s, a) for s in State for a in RequestKind if ANSWERS[s][a] is RequestAction.PARK}
    assert waits == {(State.PREPARING, RequestKind.JOIN), (State.COMPLETING, RequestKind.SYNC)}
