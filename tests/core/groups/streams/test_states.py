"""The tables of streams groups are total."""

from __future__ import annotations

from itertools import product

from mockbroker.core.groups.streams.states import (
    ADVANCE_RESULTS,
    DELETE_ANSWERS,
    DUE,
    GROUP_STATES,
    RECONCILE_ACTIONS,
    AdvanceFacts,
    GroupFacts,
    MemberState,
    StreamsGroupState,
)


def test_every_combination_of_facts_has_a_state() -> None:
    assert set(GROUP_STATES) == {GroupFacts(*facts) for facts in product((False, True), repeat=4)}


def test_a_group_without_members_is_empty_whatever_else_is_true() -> None:
    empty = {facts for facts, state in GROUP_STATES.items() if state is StreamsGroupState.EMPTY}
    assert empty == {facts for facts in GROUP_STATES if not facts.has_members}


def test_member_states_have_kafkas_numbers_in_the_log() -> None:
    assert {state.name: state.value for state in MemberState} == {
        "STABLE": 1,
        "UNREVOKED": 2,
        "UNRELEASED": 3,
        "UNKNOWN": 127,
    }


def test_every_member_state_has_an_action_for_both_cases() -> None:
    assert set(RECONCILE_ACTIONS) == set(DUE) == set(MemberState)
    assert all(set(row) == {False, True} for row in RECONCILE_ACTIONS.values())
    assert set(ADVANCE_RESULTS) == {AdvanceFacts(*f) for f in product((False, True), repeat=2)}


def test_only_an_empty_group_may_be_deleted() -> None:
    assert set(DELETE_ANSWERS) == set(StreamsGroupState)
    assert [state for state, error in DELETE_ANSWERS.items() if not error] == [
        StreamsGroupState.EMPTY
    ]
