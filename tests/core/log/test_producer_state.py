"""What a partition remembers of idempotent producers, and how it judges their batches."""

from __future__ import annotations

import pytest

from mockbroker.core.log.producer_state import (
    SEQUENCE_MAX,
    AbortedTransaction,
    BatchMetadata,
    ProducerStateManager,
)
from mockbroker.core.log.verification import VerificationGuard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import ControlType, build_marker
from tests.support.requests import batch_of

PID = 7


def wrote(
    states: ProducerStateManager,
    first: int,
    last: int,
    *,
    epoch: int = 0,
    base: int | None = None,
    transactional: bool = False,
    timestamp: int = 1000,
    pid: int = PID,
) -> None:
    base = first if base is None else base
    batch = BatchMetadata(first, last, base, base + 1, timestamp)
    states.append(pid, epoch, batch, transactional)


def check(
    states: ProducerStateManager, first: int, *, epoch: int = 0, transactional=False
) -> ErrorCode:
    return ErrorCode(states.check(PID, epoch, first, transactional))


def test_a_producer_never_seen_may_start_at_any_sequence():
    assert check(ProducerStateManager(), 17) is ErrorCode.NONE


@pytest.mark.covers("S117")
def test_only_the_next_sequence_is_accepted():
    states = ProducerStateManager()
    wrote(states, 0, 4)
    assert check(states, 5) is ErrorCode.NONE
    assert check(states, 6) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(states, 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.covers("S117")
def test_exactly_the_last_five_batches_are_known_as_duplicates():
    states = ProducerStateManager()
    for sequence in range(6):
        wrote(states, sequence, sequence, base=100 + sequence, timestamp=sequence)
    assert states.find_duplicate(PID, 0, 0, 0) is None
    for sequence in range(1, 6):
        known = states.find_duplicate(PID, 0, sequence, sequence)
        assert known is not None
        assert (known.base_offset, known.timestamp) == (100 + sequence, sequence)
    assert states.find_duplicate(PID, 0, 1, 2) is None
    assert states.find_duplicate(PID, 1, 1, 1) is None
    assert check(states, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced():
    states = ProducerStateManager()
    wrote(states, 0, 0, epoch=3)
    assert check(states, 1, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_epoch_starts_at_sequence_0_and_forgets_the_batches_before():
    states = ProducerStateManager()
    wrote(states, 0, 4)
    assert check(states, 5, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(states, 0, epoch=1) is ErrorCode.NONE
    wrote(states, 0, 1, epoch=1)
    assert states.find_duplicate(PID, 0, 0, 4) is None
    assert check(states, 2, epoch=1) is ErrorCode.NONE


def test_sequences_wrap_to_0():
    states = ProducerStateManager()
    wrote(states, SEQUENCE_MAX - 1, SEQUENCE_MAX)
    assert check(states, 0) is ErrorCode.NONE
    assert check(states, SEQUENCE_MAX) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    wrote(states, SEQUENCE_MAX - 1, 3)  # a batch may straddle the end
    assert check(states, 4) is ErrorCode.NONE


def test_a_plain_batch_of_a_producer_with_an_open_transaction_is_refused():
    states = ProducerStateManager()
    wrote(states, 0, 0, transactional=True)
    assert check(states, 1) is ErrorCode.INVALID_TXN_STATE
    assert check(states, 1, transactional=True) is ErrorCode.NONE
    assert states.has_ongoing_transaction(PID)


def test_a_producer_without_an_epoch_may_go_on_at_any_sequence():
    states = ProducerStateManager()
    wrote(states, 0, 0, epoch=-1)
    assert check(states, 5, epoch=-1) is ErrorCode.NONE
    assert check(states, 9, epoch=0) is ErrorCode.NONE


def test_a_marker_of_the_same_epoch_keeps_the_batches_and_a_newer_one_clears_them():
    states = ProducerStateManager()
    wrote(states, 0, 1, transactional=True)
    states.append_marker(PID, 0, 1, 2, 1000, aborted=False)
    assert states.find_duplicate(PID, 0, 0, 1) is not None
    assert check(states, 2) is ErrorCode.NONE
    states.append_marker(PID, 1, 1, 3, 1000, aborted=False)
    assert states.find_duplicate(PID, 0, 0, 1) is None
    assert check(states, 0, epoch=1) is ErrorCode.NONE
    assert check(states, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_markers_of_an_older_epoch_or_coordinator_are_refused():
    states = ProducerStateManager()
    states.append_marker(PID, 5, 9, 0, 1000, aborted=True)
    assert states.check_marker(PID, 4, 9) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert states.check_marker(PID, 5, 8) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert states.check_marker(PID, 5, 9) == ErrorCode.NONE
    assert states.check_marker(99, 0, 0) == ErrorCode.NONE


@pytest.mark.parametrize("first", [0, 6])
def test_a_marker_with_the_epoch_of_an_open_transaction_is_late_since_version_2(first):
    """From KIP-890 on, each transaction has an epoch of its own (KIP-1228)."""
    states = ProducerStateManager()
    wrote(states, 0, 0, base=first, epoch=3, transactional=True)
    assert states.check_marker(PID, 3, 0, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert states.check_marker(PID, 3, 0, version=1) == ErrorCode.NONE
    assert states.check_marker(PID, 4, 0, version=2) == ErrorCode.NONE
    states.append_marker(PID, 4, 0, first + 1, 1000, aborted=False)
    assert states.check_marker(PID, 4, 0, version=2) == ErrorCode.NONE


@pytest.mark.covers("S10")
def test_the_oldest_open_transaction_holds_the_first_unstable_offset():
    states = ProducerStateManager()
    assert states.first_unstable_offset() == -1
    wrote(states, 0, 1, base=5, transactional=True, pid=1)
    wrote(states, 0, 1, base=7, transactional=True, pid=2)
    states.append_marker(2, 0, 0, 9, 1000, aborted=False)
    states.high_watermark_moved(10)
    assert states.first_unstable_offset() == 5
    states.append_marker(1, 0, 0, 10, 1000, aborted=True)
    for high_watermark in (9, 10):  # the marker is not below it
        states.high_watermark_moved(high_watermark)
        assert states.first_unstable_offset() == 5
    states.high_watermark_moved(11)
    assert states.first_unstable_offset() == -1


@pytest.mark.parametrize(("open_at", "ended_at"), [(0, 3), (3, 0)])
def test_open_and_unreplicated_transactions_count_alike(open_at, ended_at):
    states = ProducerStateManager()
    for base in (0, 3):
        wrote(states, 0, 1, base=base, transactional=True, pid=base)
    assert states.first_unstable_offset() == 0
    states.append_marker(ended_at, 0, 0, 6, 1000, aborted=True)
    assert states.first_unstable_offset() == 0
    states.high_watermark_moved(7)
    assert states.first_unstable_offset() == open_at


def test_the_aborted_index_gives_what_overlaps_the_fetched_range():
    states = ProducerStateManager()
    for pid, first, marker in ((1, 0, 4), (2, 5, 9), (3, 10, 20)):
        wrote(states, 0, 1, base=first, transactional=True, pid=pid)
        states.append_marker(pid, 0, 0, marker, 1000, aborted=True)
    one, two, three = (
        AbortedTransaction(1, 0, 4, 5),
        AbortedTransaction(2, 5, 9, 10),
        AbortedTransaction(3, 10, 20, 21),
    )
    assert states.aborted_between(0, 100) == [one, two, three]
    assert states.aborted_between(4, 5) == [one]
    assert states.aborted_between(5, 10) == [two]
    assert states.aborted_between(6, 11) == [two, three]
    assert states.aborted_between(21, 100) == []


def test_aborted_transactions_are_in_the_order_of_their_first_offsets():
    """Also if the markers are in another order."""
    states = ProducerStateManager()
    for pid, first in ((1, 0), (2, 2)):
        wrote(states, 0, 1, base=first, transactional=True, pid=pid)
    for pid, marker in ((2, 5), (1, 9)):
        states.append_marker(pid, 0, 0, marker, 1000, aborted=True)
    one, two = AbortedTransaction(1, 0, 9, 10), AbortedTransaction(2, 2, 5, 0)
    assert states.aborted == [two, one]
    assert states.aborted_between(0, 100) == [one, two]
    assert states.aborted_between(6, 100) == [one]


def test_a_marker_without_data_leaves_no_entry_in_the_aborted_index():
    states = ProducerStateManager()
    states.append_marker(PID, 0, 0, 4, 1000, aborted=True)
    assert states.aborted == []


def test_idle_producers_expire_at_the_next_check_but_not_with_an_open_transaction():
    states = ProducerStateManager()
    assert states.expire(1000, 50_000, 60_000) == []
    assert states.next_check_ms == 61_000
    wrote(states, 0, 0, timestamp=1000)
    wrote(states, 0, 0, timestamp=1000, transactional=True, pid=8)
    assert states.expire(61_000, 50_000, 60_000) == [PID]
    assert set(states.entries) == {8}
    assert states.expire(121_000, 50_000, 60_000) == []


def test_a_copy_checks_its_producers_when_the_original_would():
    states = ProducerStateManager()
    states.expire(1000, 50_000, 60_000)
    wrote(states, 0, 0, timestamp=1000)
    copy = states.fork()
    assert copy.expire(61_000, 50_000, 60_000) == [PID]
    assert set(states.entries) == {PID}


def test_a_producer_expires_by_the_timestamp_of_its_last_batch_or_marker():
    states = ProducerStateManager()
    states.expire(1000, 50_000, 60_000)
    wrote(states, 0, 0, timestamp=1000)
    wrote(states, 1, 1, timestamp=11_001)
    assert states.expire(61_000, 50_000, 60_000) == []
    assert states.expire(61_001, 50_000, 60_000) == [PID]
    states.append_marker(PID, 0, 0, 4, 30_000, aborted=True)
    assert states.expire(79_999, 50_000, 60_000) == []
    assert states.expire(80_000, 50_000, 60_000) == [PID]


def test_a_guard_expires_by_its_own_age():
    """A batch under verification stays valid when its producer's entry expires. A verification
    without a batch is forgotten.
    """
    states = ProducerStateManager()
    states.expire(1000, 50_000, 60_000)
    states.append_marker(PID, 0, 0, 4, 1000, aborted=True)
    guard = states.start_verification(PID, 0, 1, 60_500, bumps=False)
    assert isinstance(guard, VerificationGuard)
    assert states.expire(61_000, 50_000, 60_000) == [PID]
    assert states.check_guard(PID, 0, guard) == ErrorCode.NONE
    assert states.expire(110_499, 50_000, 60_000) == []
    assert states.check_guard(PID, 0, guard) == ErrorCode.NONE
    assert states.expire(110_500, 50_000, 60_000) == []
    assert states.guards == {}
    assert states.check_guard(PID, 0, guard) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("here", "there", "acknowledged", "following"),
    [
        ([0, 1], [0, 1, 2, 3], 4, 4),
        ([0, 1], [0, 1], 2, 2),
        ([0, 1], [0, 1, 2, 3], 2, 2),  # the last two come again
        ([0, 1], [0, 1, 2, 3], 3, 3),
        ([0, 1], [0, 1], 1, 2),  # the last one comes again, and is here already
        ([0], [0, 1], 0, 1),
        ([0], list(range(9)), 0, 4),  # of nine batches five are kept: as many as can be in flight
        ([0, 1, 2], [0], 1, 3),  # the log goes forward
    ],
)
def test_a_log_that_is_put_back_expects_what_its_producers_send_next(
    here, there, acknowledged, following
):
    """Each batch has one record; the offsets are the sequences."""
    states, other = ProducerStateManager(), ProducerStateManager()
    for log, sequences in ((states, here), (other, there)):
        for sequence in sequences:
            log.append(PID, 0, BatchMetadata(*[sequence] * 4, 1000), transactional=False)
    states.resume_from(other, acknowledged)
    accepted = [n for n in range(12) if check(states, n) is ErrorCode.NONE]
    assert accepted == [following]


@pytest.mark.parametrize("there", ["nothing", "another producer", "another epoch"])
def test_a_log_that_is_put_back_forgets_whom_it_cannot_place(there):
    """They may go on anywhere, unless a transaction is open: then what was known stays."""
    states, other = ProducerStateManager(), ProducerStateManager()
    wrote(states, 0, 4)
    wrote(states, 0, 4, base=10, pid=8, transactional=True)
    for pid in (PID, 8):
        wrote(other, 0, 6, pid=pid + 100 * (there == "another producer"), epoch=3)
    states.resume_from(None if there == "nothing" else other, 100)
    assert check(states, 17) is ErrorCode.NONE
    assert states.entries[8].last_sequence == 4
    assert states.first_unstable_offset() == 10


def test_a_replayed_log_gives_the_same_state():
    states = ProducerStateManager()
    more = {"producer_id": PID, "producer_epoch": 2, "transactional": True}
    states.replay(batch_of(b"a", b"b", base_sequence=SEQUENCE_MAX, base_offset=3, **more))
    states.replay(batch_of(b"plain", base_offset=5))
    assert check(states, 1, epoch=2, transactional=True) is ErrorCode.NONE
    assert states.first_unstable_offset() == 3
    states.replay(
        build_marker(
            ControlType.ABORT,
            producer_id=PID,
            producer_epoch=2,
            coordinator_epoch=4,
            timestamp=5,
            base_offset=6,
        )
    )
    assert states.aborted == [AbortedTransaction(PID, 3, 6, 7)]
    assert states.entries[PID].coordinator_epoch == 4
    assert states.entries[PID].last_timestamp == 5


def test_a_replay_counts_producer_0_and_passes_over_plain_batches():
    states = ProducerStateManager()
    states.replay(batch_of(b"plain"))
    states.replay(batch_of(b"a", producer_id=0, producer_epoch=0, base_sequence=0, base_offset=1))
    assert list(states.entries) == [0]
    assert states.entries[0].coordinator_epoch == -1  # as DescribeProducers shows it


def test_a_state_that_is_cleared_is_like_a_new_one():
    states = ProducerStateManager()
    wrote(states, 0, 4, base=0, transactional=True)
    states.append_marker(PID, 0, 0, 5, 1000, aborted=True)
    wrote(states, 0, 4, base=6, pid=8, transactional=True)
    states.start_verification(9, 0, 0, 1000, bumps=False)
    states.clear()
    assert (states.entries, states.guards, states.aborted) == ({}, {}, [])
    assert (states.first_unstable_offset(), states.last_marker) == (-1, -1)
    wrote(states, 3, 4, base=9, transactional=True)
    states.append_marker(PID, 0, 0, 11, 1000, aborted=False)
    states.high_watermark_moved(12)
    assert states.first_unstable_offset() == -1


def test_transactions_that_ended_below_the_log_start_hold_nothing_back():
    states = ProducerStateManager()
    for pid, first in ((1, 0), (2, 4)):
        wrote(states, 0, 1, base=first, transactional=True, pid=pid)
        states.append_marker(pid, 0, 0, first + 2, 1000, aborted=True)
    states.log_start_moved(2)
    assert [entry.producer_id for entry in states.aborted] == [1, 2]
    assert states.first_unstable_offset() == 0
    states.log_start_moved(3)
    assert [entry.producer_id for entry in states.aborted] == [2]
    assert states.first_unstable_offset() == 4
    states.log_start_moved(6)
    assert [entry.producer_id for entry in states.aborted] == [2]
    states.log_start_moved(7)
    assert (states.aborted, states.first_unstable_offset()) == ([], -1)


def test_an_aborted_transaction_that_ends_at_the_log_start_stays_when_others_go():
    states = ProducerStateManager()
    for pid, first in ((1, 0), (2, 4)):
        wrote(states, 0, 1, base=first, transactional=True, pid=pid)
        states.append_marker(pid, 0, 0, first + 2, 1000, aborted=True)
    states.log_start_moved(6)
    assert [entry.producer_id for entry in states.aborted] == [2]
