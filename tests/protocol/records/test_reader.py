from __future__ import annotations

import pytest

from mockbroker_protocol.records import (
    ControlType,
    CorruptBatchError,
    Record,
    UnsupportedMagicError,
    build_batch,
    build_marker,
    next_fetch_offset,
    read_records,
)

MARKER = bytes(
    build_marker(
        ControlType.ABORT,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=9,
        base_offset=6,
    )
)


def mixture() -> bytes:
    """Offsets 0-2, 3-5 (compressed), 6 (a marker), 7."""
    first = build_batch([Record(value=b"first")] * 3)
    second = build_batch([Record(value=b"zstd")] * 3, base_offset=3, codec=4)
    last = build_batch([Record(value=b"last")], base_offset=7)
    return b"".join([first, second, MARKER, last])


def test_all_batches_are_read_in_one_go_without_control_records():
    assert [record.offset for record in read_records(mixture())] == [0, 1, 2, 3, 4, 5, 7]


@pytest.mark.covers("S319")
def test_control_records_are_there_for_those_who_ask():
    offsets = [record.offset for record in read_records(mixture(), include_control=True)]
    assert offsets == [0, 1, 2, 3, 4, 5, 6, 7]


def test_an_incomplete_batch_at_the_end_is_dropped():
    data = mixture()
    for cut in (1, 20, 69):
        assert [record.offset for record in read_records(data[:-cut])][-1] == 5
        assert next_fetch_offset(data[:-cut], 0) == 7


def test_the_next_offset_is_after_the_last_whole_batch():
    assert next_fetch_offset(b"", 41) == 41
    assert next_fetch_offset(mixture(), 0) == 8
    assert next_fetch_offset(MARKER, 3) == 7
    emptied = build_batch([], base_offset=20, last_offset=29)
    assert next_fetch_offset(emptied, 20) == 30
    assert list(read_records(emptied)) == []


def test_a_wrong_checksum_is_refused_unless_told_to_trust():
    batch = build_batch([Record(value=b"value")])
    batch[-2] ^= 1
    with pytest.raises(CorruptBatchError, match="crc-32c"):
        list(read_records(batch))
    assert [record.value for record in read_records(batch, check_crcs=False)] == [b"valud"]


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_formats_other_than_v2_are_refused(magic):
    batch = build_batch([Record()])
    batch[16] = magic
    with pytest.raises(UnsupportedMagicError, match=f"magic {magic}"):
        list(read_records(batch))
    with pytest.raises(UnsupportedMagicError, match=f"magic {magic}"):
        next_fetch_offset(batch, 0)


@pytest.mark.parametrize("size", [-1, 0, 3, -(2**31)])
def test_a_size_that_leads_nowhere_is_refused_with_its_place(size):
    first = build_batch([Record()])
    broken = build_batch([Record()])
    broken[8:12] = size.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatchError, match=f"batch length {size}, less than 49$") as caught:
        list(read_records(first + broken))
    assert caught.value.byte == len(first) + 8


def test_a_wrong_checksum_says_in_which_batch():
    first = build_batch([Record()])
    broken = build_batch([Record(value=b"x")])
    broken[-2] ^= 1
    with pytest.raises(CorruptBatchError) as caught:
        list(read_records(first + broken))
    assert caught.value.byte == len(first) + 17
