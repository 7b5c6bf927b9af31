"""The guard of an open question, and what it does to a producer's batches (KIP-890)."""

from __future__ import annotations

import pytest

from mockbroker.core.log.producer_state import BatchMetadata, ProducerStateManager
from mockbroker.core.log.verification import NO_GUARD, VerificationGuard
from mockbroker_protocol import ErrorCode

E = ErrorCode
PID = 7
NOW_MS = 1000


def start(
    states: ProducerStateManager, epoch: int = 0, sequence: int = 0, *, bumps: bool = False
) -> VerificationGuard:
    guard = states.start_verification(PID, epoch, sequence, NOW_MS, bumps=bumps)
    assert isinstance(guard, VerificationGuard)
    return guard


def append(
    states: ProducerStateManager, epoch: int = 0, offset: int = 0, sequence: int = 0
) -> None:
    batch = BatchMetadata(sequence, sequence, offset, offset, 1000)
    states.append(PID, epoch, batch, transactional=True)


def end(states: ProducerStateManager, epoch: int = 0, offset: int = 1) -> None:
    states.append_marker(PID, epoch, 0, offset, 1000, aborted=True)


def test_only_the_guard_that_was_given_opens_a_transaction() -> None:
    states = ProducerStateManager()
    guard = start(states)
    assert states.check_guard(PID, 0, guard) == E.NONE
    assert states.check_guard(PID, 0, NO_GUARD) == E.INVALID_TXN_STATE
    assert (
        states.check_guard(PID, 0, VerificationGuard(0, 0, 0, bumps=False)) == E.INVALID_TXN_STATE
    )


def test_while_a_transaction_is_open_no_guard_is_needed() -> None:
    states = ProducerStateManager()
    start(states)
    append(states)
    assert states.guards == {}
    assert states.start_verification(PID, 0, 1, NOW_MS, bumps=False) is None
    assert states.check_guard(PID, 0, NO_GUARD) == E.NONE


def test_a_marker_makes_the_guard_void() -> None:
    """The answer that comes after it is about a transaction that has ended: nothing may hang."""
    states = ProducerStateManager()
    guard = start(states)
    end(states)
    assert states.check_guard(PID, 0, guard) == E.INVALID_TXN_STATE


def test_the_same_question_has_the_same_guard() -> None:
    states = ProducerStateManager()
    assert start(states, sequence=5) is start(states, sequence=3)
    assert states.guards[PID].lowest_sequence == 3
    start(states, sequence=9)
    assert states.guards[PID].lowest_sequence == 3
    start(states, epoch=1, sequence=9)
    assert (states.guards[PID].epoch, states.guards[PID].lowest_sequence) == (1, 9)


def test_an_epoch_before_is_refused_without_asking() -> None:
    states = ProducerStateManager()
    end(states, epoch=4)
    assert states.start_verification(PID, 3, 0, NOW_MS, bumps=False) == E.INVALID_PRODUCER_EPOCH
    assert states.check_guard(PID, 3, NO_GUARD) == E.INVALID_PRODUCER_EPOCH


def test_a_transaction_of_another_epoch_is_another_transaction() -> None:
    states = ProducerStateManager()
    append(states)
    assert start(states, epoch=1).epoch == 1


def test_a_batch_may_not_overtake_one_that_waits() -> None:
    """The one with the lower sequence failed, and will be tried again."""
    states = ProducerStateManager()
    start(states, sequence=2)
    assert states.check(PID, 0, 3, transactional=True) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(PID, 0, 2, transactional=True) == E.NONE


@pytest.mark.parametrize(
    ("bumps", "error"), [(True, E.OUT_OF_ORDER_SEQUENCE_NUMBER), (False, E.NONE)]
)
def test_with_tv2_a_producer_begins_at_sequence_0(bumps: bool, error: ErrorCode) -> None:
    """KAFKA-19999; without, its state may have expired."""
    states = ProducerStateManager()
    start(states, sequence=4, bumps=bumps)
    assert states.check(PID, 0, 4, transactional=True) == error


def test_guards_go_with_everything_else() -> None:
    states = ProducerStateManager()
    start(states)
    states.clear()
    assert states.guards == {}
