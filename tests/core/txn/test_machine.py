"""A transactional id answers as its tables say, and stores each move before it makes it."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.txn.events import Expire, Loaded, Remove
from mockbroker.core.txn.machine import COMPLETION_RETRY_MS
from mockbroker.core.txn.states import ANSWERS, TransactionState, TxnAction, TxnRequest
from mockbroker_protocol import ErrorCode
from tests.support.txn_play import NEW_PRODUCER_ID, PRODUCER_ID, START_MS, T0, T1, Play, image

E = ErrorCode
EVERY_CELL = [(state, ask) for state in TransactionState for ask in TxnRequest]


def put(play: Play, ask: TxnRequest) -> Any:
    """Ask the question of the table: right producer id, and the epoch that the question is for."""
    epoch = play.id.epoch - (1 if ask.name.endswith("_RETRY") else 0)
    match ask:
        case TxnRequest.INIT:
            return play.init()
        case TxnRequest.ADD:
            return play.add(T1)
        case TxnRequest.VERIFY:
            return play.id.verify(PRODUCER_ID, epoch, (T0, T1))
        case _:
            version = 2 if ask.name.startswith("TV2") else 0
            return play.end(committed="COMMIT" in ask.name, version=version, epoch=epoch)


@pytest.mark.parametrize(("state", "ask"), EVERY_CELL)
def test_every_cell_is_answered_as_it_says(state: TransactionState, ask: TxnRequest) -> None:
    """Those of PrepareCommit and PrepareAbort before markers are on their way."""
    play = Play(image(state))
    answer = put(play, ask)
    verdict = ANSWERS[state][ask]
    if isinstance(verdict, ErrorCode):
        assert (answer if ask is TxnRequest.VERIFY else answer.error) is verdict
        assert (play.state, play.stored, play.id.pending) == (state, [], None)
        return
    after = {
        TxnAction.BUMP_EPOCH: TransactionState.EMPTY,
        TxnAction.FENCE: TransactionState.PREPARE_ABORT,
        TxnAction.ADD: TransactionState.ONGOING,
        TxnAction.END_EMPTY: TransactionState.COMPLETE_ABORT,
        TxnAction.END: TransactionState.PREPARE_COMMIT
        if "COMMIT" in ask.name
        else TransactionState.PREPARE_ABORT,
    }.get(verdict, state)
    assert play.state is after
    if verdict is TxnAction.VERIFY:
        there = E.NONE if state is TransactionState.ONGOING else E.TRANSACTION_ABORTABLE
        assert answer == [there, E.TRANSACTION_ABORTABLE]
    elif verdict is TxnAction.FENCE:
        assert answer.error is E.CONCURRENT_TRANSACTIONS
    else:
        assert answer.error is E.NONE
    if verdict in (TxnAction.REPEAT, TxnAction.VERIFY):
        assert play.stored == []
    else:
        assert play.stored[-1] is not None
        assert play.stored[-1].state is after


@pytest.mark.parametrize(("state", "ask"), EVERY_CELL)
def test_while_a_move_is_pending_the_next_one_is_refused(
    state: TransactionState, ask: TxnRequest
) -> None:
    """Whatever the state says; only what does not move anything is answered."""
    if state in (TransactionState.PREPARE_EPOCH_FENCE, TransactionState.DEAD):
        return  # these are only ever pending themselves
    play = Play(image(state))
    play.storing = False
    if state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        play.tell(Loaded())
    elif state is TransactionState.ONGOING:
        play.add(T1, callback="first")
    else:
        play.init(callback="first")
    assert play.id.pending is not None
    answer = put(play, ask)
    if ask is TxnRequest.VERIFY:
        assert answer in ([E.NONE, E.TRANSACTION_ABORTABLE], E.CONCURRENT_TRANSACTIONS) or (
            answer == [E.TRANSACTION_ABORTABLE] * 2
        )
    else:
        assert answer.error is E.CONCURRENT_TRANSACTIONS


# ---------------------------------------------------------------------------------- initialising


def test_the_first_epoch_is_0_of_the_producer_id_that_was_drawn() -> None:
    answer = Play().init()
    assert (answer.error, answer.producer_id, answer.epoch) == (E.NONE, PRODUCER_ID, 0)


def test_each_producer_gets_the_next_epoch() -> None:
    play = Play()
    assert [play.init().epoch for _ in range(3)] == [0, 1, 2]
    assert play.moves == [(TransactionState.EMPTY, TransactionState.EMPTY)] * 3


@pytest.mark.parametrize(
    "state",
    [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT],
)
def test_who_says_its_epoch_goes_on_and_may_ask_again(state: TransactionState) -> None:
    """KIP-360: the epoch before is a retry, as long as nobody else came since."""
    play = Play(image(state))
    first = play.init(PRODUCER_ID, 5)
    assert (first.error, first.epoch) == (E.NONE, 6)
    assert play.init(PRODUCER_ID, 5) == first
    assert play.init(PRODUCER_ID, 4).error is E.PRODUCER_FENCED
    assert play.init().epoch == 7  # somebody else
    assert play.init(PRODUCER_ID, 6).error is E.PRODUCER_FENCED


def test_another_producer_id_is_fenced() -> None:
    assert Play(image()).init(8, 5).error is E.PRODUCER_FENCED
    assert Play(image()).init(PRODUCER_ID, 6).error is E.PRODUCER_FENCED


def test_a_new_id_takes_whatever_the_producer_says_it_was() -> None:
    play = Play()
    assert play.init(4242, 3).epoch == 0
    assert play.id.producer_id == PRODUCER_ID


@pytest.mark.parametrize("identity", [(-1, -1), (PRODUCER_ID, 32_766)])
def test_who_has_used_up_the_epochs_gets_another_producer_id(identity: tuple[int, int]) -> None:
    play = Play(image(epoch=32_766, last_epoch=32_765))
    answer = play.init(*identity)
    assert (answer.error, answer.producer_id, answer.epoch) == (E.NONE, NEW_PRODUCER_ID, 0)
    # A retry by the former id is known by its exhausted epoch.
    again = play.init(PRODUCER_ID, 32_766)
    if identity[0] < 0:
        assert again.error is E.PRODUCER_FENCED
    else:
        assert (again.producer_id, again.epoch) == (NEW_PRODUCER_ID, 0)


def test_an_exhausted_epoch_is_not_raised_for_who_names_another() -> None:
    play = Play(image(epoch=32_766))
    assert play.init(PRODUCER_ID, 32_000).error is E.UNKNOWN_SERVER_ERROR


# --------------------------------------------------------------------------------------- adding


def test_partitions_come_together() -> None:
    play = Play(image())
    play.add(T0)
    play.now_ms += 500
    play.add(T1)
    assert list(play.id.partitions) == [T0, T1]
    assert play.id.start_ms == START_MS
    assert play.id.update_ms == START_MS + 500


def test_what_is_there_is_not_stored_again() -> None:
    play = Play(image(TransactionState.ONGOING))
    assert play.add(T0).error is E.NONE
    assert play.stored == []
    assert play.add(T0, T1).error is E.NONE
    assert play.id.partitions == {T0: None, T1: None}


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"producer_id": 8}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"epoch": 4}, E.PRODUCER_FENCED),
        ({"epoch": 6}, E.PRODUCER_FENCED),
    ],
)
def test_only_the_producer_itself_adds_verifies_and_ends(
    changed: dict[str, int], error: ErrorCode
) -> None:
    play = Play(image(TransactionState.ONGOING))
    assert play.add(T1, **changed).error is error
    identity = {"producer_id": PRODUCER_ID, "epoch": 5, **changed}
    assert play.id.verify(identity["producer_id"], identity["epoch"], (T0,)) is error
    assert play.end(**changed).error is error
    if changed != {"epoch": 4}:
        assert play.end(version=2, **changed).error is error
    assert play.state is TransactionState.ONGOING


# ---------------------------------------------------------------------------------- the two ends


@pytest.mark.parametrize("committed", [True, False])
def test_the_first_protocol_keeps_the_epoch(committed: bool) -> None:
    play = Play(image(TransactionState.ONGOING, version=0))
    assert play.end(committed=committed).error is E.NONE
    (order,) = play.markers
    assert (order.epoch, order.committed, order.partitions) == (5, committed, (T0,))
    play.mark()
    complete = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    assert (play.state, play.id.epoch, play.id.partitions) == (complete, 5, {})
    assert play.end(committed=committed).error is E.NONE
    assert play.end(committed=not committed).error is E.INVALID_TXN_STATE


@pytest.mark.parametrize("committed", [True, False])
def test_the_second_protocol_raises_the_epoch_with_each_end(committed: bool) -> None:
    """Markers carry the new epoch, which the answer tells; the old one means a retry."""
    play = Play(image(TransactionState.ONGOING))
    answer = play.end(committed=committed, version=2)
    assert (answer.error, answer.producer_id, answer.epoch) == (E.NONE, PRODUCER_ID, 6)
    assert play.markers[0].epoch == 6
    play.mark()
    assert play.end(committed=committed, version=2, epoch=5) == answer
    assert play.end(committed=not committed, version=2, epoch=5).error is E.INVALID_TXN_STATE
    assert play.end(committed=True, version=2).error is E.INVALID_TXN_STATE
    assert play.end(committed=False, version=2).epoch == 7  # an abort of nothing


def test_at_the_last_epoch_an_end_hands_over_to_another_producer_id() -> None:
    """The markers go out with 32767, which no producer ever has."""
    play = Play(image(TransactionState.ONGOING, epoch=32_766))
    answer = play.end(version=2)
    assert (answer.producer_id, answer.epoch) == (NEW_PRODUCER_ID, 0)
    assert (play.markers[0].producer_id, play.markers[0].epoch) == (PRODUCER_ID, 32_767)
    play.mark()
    assert (play.id.producer_id, play.id.epoch) == (NEW_PRODUCER_ID, 0)
    retry = {"producer_id": PRODUCER_ID, "epoch": 32_766, "version": 2}
    assert play.end(**retry) == answer
    assert play.end(committed=False, **retry).error is E.INVALID_TXN_STATE


def test_an_end_is_answered_before_its_markers_are_written() -> None:
    play = Play(image(TransactionState.ONGOING, partitions=(T0, T1)))
    assert play.end(version=2).error is E.NONE
    assert play.state is TransactionState.PREPARE_COMMIT
    play.mark(T0)
    assert list(play.id.partitions) == [T1]
    assert play.add().error is E.CONCURRENT_TRANSACTIONS
    assert play.init().error is E.CONCURRENT_TRANSACTIONS
    play.mark(T1)
    assert play.state is TransactionState.COMPLETE_COMMIT


def test_a_second_answer_for_the_same_markers_changes_nothing() -> None:
    play = Play(image(TransactionState.ONGOING))
    play.end(version=2)
    play.mark(T0).mark(T0)
    assert [each.state for each in play.stored if each] == [
        TransactionState.PREPARE_COMMIT,
        TransactionState.COMPLETE_COMMIT,
    ]
    play.add(T1, version=2)
    play.mark(T1)  # a late one, of the transaction before
    assert (play.state, play.id.partitions) == (TransactionState.ONGOING, {T1: None})


def test_an_abort_of_nothing_needs_no_markers() -> None:
    play = Play(image())
    assert play.end(committed=False, version=2).epoch == 6
    assert play.markers == []
    assert play.moves == [
        (TransactionState.EMPTY, TransactionState.PREPARE_ABORT),
        (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
    ]
    assert play.id.start_ms == START_MS


# ----------------------------------------------------------------------------- fencing, timeouts


@pytest.mark.parametrize(("version", "epochs"), [(2, (6, 7)), (1, (6, 7)), (0, (6, 7))])
def test_a_producer_that_comes_anew_has_what_is_open_aborted(
    version: int, epochs: tuple[int, int]
) -> None:
    """One epoch for the markers, which nobody is given, the next for the producer."""
    play = Play(image(TransactionState.ONGOING))
    assert play.init(version=version).error is E.CONCURRENT_TRANSACTIONS
    assert (play.markers[0].epoch, play.markers[0].committed) == (epochs[0], False)
    assert play.init(version=version).error is E.CONCURRENT_TRANSACTIONS
    play.mark()
    assert play.state is TransactionState.COMPLETE_ABORT
    assert play.init(version=version).epoch == epochs[1]


def test_a_transaction_may_take_its_timeout_and_not_longer() -> None:
    play = Play(image(TransactionState.ONGOING))
    assert play.id.deadline_ms() == START_MS + 60_001
    assert play.tick(60_000).state is TransactionState.ONGOING
    assert play.tick(1).state is TransactionState.PREPARE_ABORT
    assert play.id.deadline_ms() is None
    assert play.mark().state is TransactionState.COMPLETE_ABORT
    assert play.replies == {}
    assert play.add(T0, epoch=5).error is E.PRODUCER_FENCED
    assert play.end(epoch=5).error is E.PRODUCER_FENCED


def test_after_a_timeout_a_producer_of_tv2_may_abort_but_not_commit() -> None:
    """To abort looks like a retry, and the answer tells the epoch to go on with."""
    play = Play(image(TransactionState.ONGOING))
    play.tick(60_001).mark()
    assert play.end(version=2, epoch=5).error is E.INVALID_TXN_STATE
    answer = play.end(committed=False, version=2, epoch=5)
    assert (answer.error, answer.epoch) == (E.NONE, 6)


def test_a_timeout_at_the_last_epoch_hands_over_to_another_producer_id() -> None:
    play = Play(image(TransactionState.ONGOING, epoch=32_766))
    play.tick(60_001).mark()
    assert (play.id.producer_id, play.id.epoch) == (NEW_PRODUCER_ID, 0)


def test_below_tv2_a_fence_at_the_last_epoch_leaves_an_epoch_that_nobody_is_given() -> None:
    play = Play(image(TransactionState.ONGOING, epoch=32_766, version=0))
    play.tick(60_001, version=1).mark()
    assert (play.id.producer_id, play.id.epoch) == (PRODUCER_ID, 32_767)
    assert (play.init(version=1).producer_id, play.id.epoch) == (NEW_PRODUCER_ID, 0)


def test_a_fence_that_cannot_be_stored_is_not_raised_twice() -> None:
    """Below TV2 the epoch rises in memory first, and nobody was given it."""
    play = Play(image(TransactionState.ONGOING, version=0))
    play.failing = E.COORDINATOR_NOT_AVAILABLE
    assert play.init(version=0).error is E.COORDINATOR_NOT_AVAILABLE
    assert play.init(version=0).error is E.COORDINATOR_NOT_AVAILABLE
    play.failing = E.NONE
    assert play.init(version=0).error is E.CONCURRENT_TRANSACTIONS
    assert play.markers[0].epoch == 6
    play.mark()
    assert play.init(version=0).epoch == 7
    play.add(T0)
    assert play.init(version=0).error is E.CONCURRENT_TRANSACTIONS
    assert play.markers[-1].epoch == 8


# ------------------------------------------------------------------------------- storing, loading


def test_nothing_moves_before_it_is_stored() -> None:
    play = Play(image())
    play.storing = False
    assert play.add(T0) is None
    assert (play.state, play.id.pending, play.id.partitions) == (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        {},
    )
    play.store()
    assert play.replies["add"].error is E.NONE
    assert (play.state, play.id.pending) == (TransactionState.ONGOING, None)


@pytest.mark.parametrize("ask", ["init", "add", "end"])
def test_what_cannot_be_stored_does_not_happen(ask: str) -> None:
    play = Play(image(TransactionState.ONGOING if ask == "end" else TransactionState.EMPTY))
    before = play.id.image()
    play.failing = E.NOT_COORDINATOR
    assert getattr(play, ask)().error is E.NOT_COORDINATOR
    assert play.id.image() == before
    assert play.id.pending is None
    play.failing = E.NONE
    assert getattr(play, ask)().error is E.NONE


def test_a_completion_that_cannot_be_stored_is_tried_again() -> None:
    play = Play(image(TransactionState.ONGOING))
    play.end(version=2)
    play.failing = E.COORDINATOR_NOT_AVAILABLE
    play.mark()
    assert (play.state, play.id.pending) == (
        TransactionState.PREPARE_COMMIT,
        TransactionState.COMPLETE_COMMIT,
    )
    assert play.id.deadline_ms() == START_MS + COMPLETION_RETRY_MS
    play.tick(COMPLETION_RETRY_MS)
    assert play.state is TransactionState.PREPARE_COMMIT
    play.failing = E.NONE
    assert play.tick(COMPLETION_RETRY_MS).state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize(
    ("state", "complete"),
    [
        (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
        (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
    ],
)
def test_a_decision_that_is_found_in_the_log_is_carried_through(
    state: TransactionState, complete: TransactionState
) -> None:
    play = Play(image(state, partitions=(T0, T1)))
    play.tell(Loaded())
    assert [order.partitions for order in play.markers] == [(T0, T1)]
    assert play.mark().state is complete


def test_whatever_else_is_found_stays_as_it_is() -> None:
    for state in (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ):
        play = Play(image(state)).tell(Loaded())
        assert (play.state, play.stored, play.markers) == (state, [], [])


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    for state in (
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ):
        play = Play(image(state))
        play.now_ms += 999
        play.tell(Expire(1000))
        assert play.stored == []
        play.now_ms += 1
        play.tell(Expire(1000))
        assert (play.stored, play.other, play.state) == ([None], [Remove()], TransactionState.DEAD)


def test_an_id_in_use_or_that_cannot_be_forgotten_stays() -> None:
    play = Play(image(TransactionState.ONGOING))
    play.now_ms += 10_000
    assert play.tell(Expire(1000)).state is TransactionState.ONGOING
    play = Play(image())
    play.now_ms += 10_000
    play.failing = E.COORDINATOR_NOT_AVAILABLE
    assert play.tell(Expire(1000)).state is TransactionState.EMPTY
    assert play.id.pending is None
