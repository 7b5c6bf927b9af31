"""The tables of a transactional id are total, and agree with Kafka's."""

from __future__ import annotations

import pytest

from mockbroker.core.txn.states import (
    ANSWERS,
    END_REQUESTS,
    FORBIDDEN,
    STATES_BY_CODE,
    STATUS_CODES,
    TRANSITIONS,
    TransactionState,
    Trigger,
    TxnAction,
    TxnRequest,
)
from mockbroker_protocol import ErrorCode


@pytest.mark.parametrize("state", TransactionState)
def test_each_pair_of_state_and_trigger_is_either_a_transition_or_forbidden(
    state: TransactionState,
) -> None:
    assert set(TRANSITIONS[state]) | FORBIDDEN[state] == set(Trigger)
    assert not set(TRANSITIONS[state]) & FORBIDDEN[state]


@pytest.mark.parametrize("state", TransactionState)
def test_each_state_answers_each_question(state: TransactionState) -> None:
    assert set(ANSWERS[state]) == set(TxnRequest)


def test_predecessors_are_those_of_kafka() -> None:
    """TransactionState lists for each state the states it may be entered from."""
    before: dict[TransactionState, set[TransactionState]] = {
        state: set() for state in TransactionState
    }
    for state, row in TRANSITIONS.items():
        for following in row.values():
            before[following].add(state)
    idle = {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    }
    assert before == {
        TransactionState.EMPTY: idle,
        TransactionState.ONGOING: idle | {TransactionState.ONGOING},
        TransactionState.PREPARE_COMMIT: {TransactionState.ONGOING},
        # From the idle states by an abort of nothing, which TV2 allows.
        TransactionState.PREPARE_ABORT: idle
        | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
        TransactionState.COMPLETE_COMMIT: {TransactionState.PREPARE_COMMIT},
        TransactionState.COMPLETE_ABORT: {TransactionState.PREPARE_ABORT},
        TransactionState.DEAD: idle,
        TransactionState.PREPARE_EPOCH_FENCE: {TransactionState.ONGOING},
    }


def test_states_stand_in_records_by_kafkas_numbers() -> None:
    names = "Empty Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort Dead"
    expected = dict(enumerate([*names.split(), "PrepareEpochFence"]))
    assert {code: state.value for code, state in STATES_BY_CODE.items()} == expected
    assert {STATES_BY_CODE[code] for code in STATUS_CODES.values()} == set(TransactionState)


def test_what_is_decided_is_carried_through_before_anything_else() -> None:
    """While an end is prepared nothing but its markers moves the id, and nothing is let in."""
    for state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        assert set(TRANSITIONS[state]) == {Trigger.MARKED}
        assert not any(isinstance(answer, TxnAction) for answer in ANSWERS[state].values())


def test_an_end_is_never_turned_into_the_other() -> None:
    """A commit after an abort was decided is a wrong state, and the reverse, in both protocols."""
    wrong = ErrorCode.INVALID_TXN_STATE
    for state, other in (
        (TransactionState.PREPARE_COMMIT, (TxnRequest.TV1_ABORT, TxnRequest.TV2_ABORT_RETRY)),
        (TransactionState.COMPLETE_COMMIT, (TxnRequest.TV1_ABORT, TxnRequest.TV2_ABORT_RETRY)),
        (TransactionState.PREPARE_ABORT, (TxnRequest.TV1_COMMIT, TxnRequest.TV2_COMMIT_RETRY)),
        (TransactionState.COMPLETE_ABORT, (TxnRequest.TV1_COMMIT, TxnRequest.TV2_COMMIT_RETRY)),
    ):
        assert {ANSWERS[state][ask] for ask in other} == {wrong}


def test_every_form_of_an_end_is_a_question() -> None:
    """The first protocol has no retries of its own: an epoch before is fenced."""
    assert set(END_REQUESTS.values()) == set(TxnRequest) - {
        TxnRequest.INIT,
        TxnRequest.ADD,
        TxnRequest.VERIFY,
    }
    assert (False, True, True) not in END_REQUESTS
