from __future__ import annotations

import pytest

from mockbroker.client.visible import visible_records
from mockbroker_protocol.messages.fetch import AbortedTransaction, PartitionData
from mockbroker_protocol.records import (
    ControlType,
    CorruptBatchError,
    Record,
    build_batch,
    build_marker,
)


def data_batch(offset: int, count: int, producer_id: int = -1) -> bytearray:
    return build_batch(
        [Record(value=b"v")] * count,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
    )


def marker(offset: int, producer_id: int, control_type: ControlType) -> bytearray:
    return build_marker(
        control_type,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=0,
        base_offset=offset,
    )


# Producer 1 aborts 0-1, producer 2 commits 3, producer 1 commits 5; 7 is plain.
LOG = b"".join(
    [
        data_batch(0, 2, 1),
        marker(2, 1, ControlType.ABORT),
        data_batch(3, 1, 2),
        marker(4, 2, ControlType.COMMIT),
        data_batch(5, 1, 1),
        marker(6, 1, ControlType.COMMIT),
        data_batch(7, 1),
    ]
)
ABORTED = [AbortedTransaction(producer_id=1, first_offset=0)]


def offsets(position: int, *, read_committed: bool, log: bytes = LOG) -> tuple[list[int], int]:
    data = PartitionData(records=log, aborted_transactions=ABORTED)
    records, after = visible_records(data, position, read_committed=read_committed)
    return [record.offset for record in records], after


@pytest.mark.covers("S143")
def test_aborted_records_are_skipped_up_to_their_marker():
    assert offsets(0, read_committed=True) == ([3, 5, 7], 8)


@pytest.mark.covers("S319")
def test_uncommitted_readers_see_all_but_control_records():
    assert offsets(0, read_committed=False) == ([0, 1, 3, 5, 7], 8)


def test_records_before_the_position_are_left_out():
    assert offsets(1, read_committed=False) == ([1, 3, 5, 7], 8)


@pytest.mark.covers("S139")
def test_the_position_moves_past_what_nobody_sees():
    only_aborted = LOG[: len(data_batch(0, 2, 1)) + len(marker(2, 1, ControlType.ABORT))]
    assert offsets(0, read_committed=True, log=only_aborted) == ([], 3)


def test_nothing_leaves_the_position_where_it_is():
    for empty in (None, b""):
        assert visible_records(PartitionData(records=empty), 5, read_committed=True) == ([], 5)


def test_a_cut_batch_at_the_end_is_left_for_the_next_fetch():
    assert offsets(0, read_committed=False, log=LOG[:-1]) == ([0, 1, 3, 5], 7)


def test_a_corrupt_batch_is_an_error():
    broken = bytearray(LOG)
    broken[65] ^= 1
    with pytest.raises(CorruptBatchError):
        offsets(0, read_committed=False, log=bytes(broken))
