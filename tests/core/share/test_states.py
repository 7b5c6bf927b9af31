"""The tables of share groups are total, and say what KIP-932 says."""

from __future__ import annotations

from itertools import product

import pytest

from mockbroker.core.share.states import (
    ACKNOWLEDGE_SESSION_ANSWERS,
    ACKNOWLEDGE_TYPES,
    COMPLETIONS,
    EPOCH_MAX,
    FETCH_SESSION_ANSWERS,
    FINAL_EPOCH,
    FINAL_STATES,
    RECORD_TRANSITIONS,
    RETURN_STATES,
    SHARE_PARTITION_TRANSITIONS,
    WRITTEN,
    Completion,
    CompletionFacts,
    RecordEvent,
    RecordState,
    ReturnFacts,
    SessionFacts,
    SessionRequest,
    SharePartitionEvent,
    SharePartitionState,
    next_epoch,
)

BOTH = (False, True)


def test_each_state_of_a_record_has_each_event():
    assert set(RECORD_TRANSITIONS) == set(RecordState)
    assert all(set(row) == set(RecordEvent) for row in RECORD_TRANSITIONS.values())


def test_each_state_of_a_share_partition_has_each_event():
    assert set(SHARE_PARTITION_TRANSITIONS) == set(SharePartitionState)
    assert all(set(row) == set(SharePartitionEvent) for row in SHARE_PARTITION_TRANSITIONS.values())


def test_all_facts_have_an_answer():
    assert set(RETURN_STATES) == {ReturnFacts(*each) for each in product(BOTH, repeat=2)}
    assert set(COMPLETIONS) == {CompletionFacts(*each) for each in product(BOTH, repeat=4)}
    assert set(WRITTEN) == set(RecordEvent)


@pytest.mark.parametrize("answers", [FETCH_SESSION_ANSWERS, ACKNOWLEDGE_SESSION_ANSWERS])
def test_each_epoch_of_a_session_has_an_answer(answers):
    """A session that does not exist expects no epoch."""
    facts = {SessionFacts(*each) for each in product(SessionRequest, BOTH)}
    assert set(answers) == facts - {SessionFacts(SessionRequest.EXPECTED, False)}


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_nothing_leads_out_of_a_final_state(state):
    assert not any(RECORD_TRANSITIONS[state].values())


def test_a_record_is_acquired_only_while_it_is_available():
    rows = RECORD_TRANSITIONS.items()
    assert [state for state, row in rows if row[RecordEvent.ACQUIRE] is not None] == [
        RecordState.AVAILABLE
    ]


def test_a_record_that_was_archived_meanwhile_is_never_rolled_back():
    removed = [result for facts, result in COMPLETIONS.items() if facts.removed]
    assert set(removed) == {Completion.KEEP}


def test_the_values_of_states_and_types_are_those_of_the_protocol():
    assert {state.name: int(state) for state in RecordState} == {
        "AVAILABLE": 0,
        "ACQUIRED": 1,
        "ACKNOWLEDGED": 2,
        "ARCHIVING": 3,
        "ARCHIVED": 4,
    }
    assert [ACKNOWLEDGE_TYPES[each].name for each in range(5)] == [
        "GAP",
        "ACCEPT",
        "RELEASE",
        "REJECT",
        "RENEW",
    ]


def test_epochs_go_round_to_one_and_the_final_one_stays():
    assert (next_epoch(0), next_epoch(7), next_epoch(EPOCH_MAX)) == (1, 8, 1)
    assert next_epoch(FINAL_EPOCH) == FINAL_EPOCH
