"""What a cleaner may drop of transactions, as it meets their data and their markers in turn."""

from __future__ import annotations

from mockbroker.core.log.cleaned_transaction_metadata import CleanedTransactionMetadata
from mockbroker.core.log.compacted_batch import emptied
from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker_protocol.records import BatchHeader, ControlType, build_marker, set_base_offset
from tests.support.requests import batch_of


class Pass:
    """One pass over a log; each method says whether the batch may be dropped."""

    def __init__(self, *aborted: tuple[int, int, int]) -> None:
        entries = [AbortedTransaction(*each, each[2] + 1) for each in aborted]
        self.transactions = CleanedTransactionMetadata(entries)

    def data(self, offset: int, producer_id: int = -1, count: int = 1) -> bool:
        more = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
        transactional = producer_id >= 0
        batch = batch_of(*[b"v"] * count, transactional=transactional, **more)
        set_base_offset(batch, offset)
        return self.transactions.on_batch_read(BatchHeader(batch))

    def marker(self, offset: int, producer_id: int, kind: ControlType) -> bool:
        batch = build_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=0,
            base_offset=offset,
        )
        return self.transactions.on_control_batch_read(BatchHeader(batch), memoryview(batch))

    def commit(self, offset: int, producer_id: int) -> bool:
        return self.marker(offset, producer_id, ControlType.COMMIT)

    def abort(self, offset: int, producer_id: int) -> bool:
        return self.marker(offset, producer_id, ControlType.ABORT)

    @property
    def kept(self) -> list[int]:
        return [entry.first_offset for entry in self.transactions.kept_aborted]


def test_data_outside_transactions_stays():
    cleaning = Pass((7, 0, 5))
    assert not cleaning.data(1)
    assert not cleaning.data(2, producer_id=8)


def test_data_of_an_aborted_transaction_goes_and_its_marker_stays_for_this_round():
    cleaning = Pass((7, 0, 2))
    assert cleaning.data(0, 7)
    assert cleaning.data(1, 7)
    assert not cleaning.abort(2, 7)
    assert cleaning.kept == [0]


def test_a_marker_whose_data_is_gone_may_go_and_so_may_the_index_entry():
    cleaning = Pass((7, 0, 2))
    assert cleaning.abort(2, 7)
    assert cleaning.kept == []


def test_a_commit_marker_stays_as_long_as_there_is_data():
    cleaning = Pass()
    assert not cleaning.data(0, 7)
    assert not cleaning.commit(1, 7)
    assert cleaning.commit(2, 7)


def test_the_next_transaction_of_the_same_producer_is_judged_by_itself():
    cleaning = Pass((7, 0, 1), (7, 4, 5))
    assert cleaning.data(0, 7)
    assert not cleaning.abort(1, 7)
    assert not cleaning.data(2, 7)
    assert not cleaning.commit(3, 7)
    assert cleaning.data(4, 7)
    assert not cleaning.abort(5, 7)
    assert cleaning.kept == [0, 4]


def test_transactions_of_several_producers_run_side_by_side():
    cleaning = Pass((8, 1, 5))
    assert not cleaning.data(0, 7)
    assert cleaning.data(1, 8, count=2)
    assert not cleaning.data(3, 7)
    assert not cleaning.commit(4, 7)
    assert not cleaning.abort(5, 8)
    assert cleaning.commit(6, 8)


def test_an_aborted_transaction_begins_in_the_middle_of_a_batch_of_others():
    """Its first offset may lie between the offsets of a batch that is looked at."""
    cleaning = Pass((7, 5, 9))
    assert not cleaning.data(4, 8)
    assert cleaning.data(5, 7)


def test_an_emptied_control_batch_and_one_of_an_unknown_kind():
    cleaning = Pass()
    batch = build_marker(
        ControlType.COMMIT, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=0
    )
    empty = emptied(BatchHeader(batch))
    assert cleaning.transactions.on_control_batch_read(BatchHeader(empty), memoryview(empty))
    assert not cleaning.marker(3, 7, ControlType.LEADER_CHANGE)
