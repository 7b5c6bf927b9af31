from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from mockbroker_protocol.records import (
    BatchHeader,
    CorruptBatchError,
    Record,
    TimestampType,
    UnsupportedMagicError,
    build_batch,
    check_crc,
    crc_matches,
    increment_sequence,
    iter_records,
    set_base_offset,
    set_leader_epoch,
    set_max_timestamp,
    set_offset_and_epoch,
    split_batches,
)
from mockbroker_protocol.records._crc32c import crc32c
from tests.protocol.records.strategies import record_lists
from tests.protocol.records.vectors import COMMIT_MARKER, TRANSACTIONAL_BATCH


def one_record_batch(base_offset: int = 0) -> bytearray:
    return build_batch([Record(timestamp=5, value=b"v")], base_offset=base_offset)


def test_crc_32c_is_castagnolis_over_any_buffer():
    for buffer in (b"123456789", bytearray(b"123456789"), memoryview(b"x123456789")[1:]):
        assert crc32c(buffer) == 0xE3069283


@pytest.mark.covers("S318")
def test_header_reads_every_field_of_a_client_s_batch():
    header = BatchHeader(TRANSACTIONAL_BATCH)
    assert (header.base_offset, header.length, header.size) == (0, 74, 86)
    assert (header.leader_epoch, header.magic, header.crc) == (0, 2, 0xCBF04F28)
    assert (header.last_offset_delta, header.last_offset, header.next_offset) == (1, 1, 2)
    assert header.base_timestamp == 1_700_000_000_000
    assert header.max_timestamp == 1_700_000_000_005
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 5)
    assert (header.last_sequence, header.count, header.codec) == (6, 2, 0)
    assert header.is_transactional
    assert header.has_producer_id
    assert not header.is_control
    assert not header.has_delete_horizon
    assert header.timestamp_type is TimestampType.CREATE_TIME


def test_header_is_read_at_any_position_of_any_buffer():
    for buffer in (bytes, bytearray, memoryview):
        header = BatchHeader(buffer(b"xyz" + COMMIT_MARKER), 3)
        assert (header.base_offset, header.leader_epoch, header.is_control) == (10, 4, True)


def test_header_cut_short_says_how_many_bytes_there_are():
    with pytest.raises(CorruptBatchError, match=r"^byte 30: 56 bytes where a batch header has 61$"):
        BatchHeader(TRANSACTIONAL_BATCH, 30)
    with pytest.raises(CorruptBatchError, match=r"^byte 99: 0 bytes"):
        BatchHeader(TRANSACTIONAL_BATCH, 99)


@pytest.mark.parametrize(
    ("attributes", "codec", "timestamp_type", "flags"),
    [
        (0x00, 0, 0, ()),
        (0x04, 4, 0, ()),
        (0x0F, 7, 1, ()),
        (0x30, 0, 0, ("is_transactional", "is_control")),
        (0x40, 0, 0, ("has_delete_horizon",)),
    ],
)
def test_attributes_are_read_bit_by_bit(attributes, codec, timestamp_type, flags):
    batch = one_record_batch()
    batch[22] = attributes
    header = BatchHeader(batch)
    assert (header.codec, header.timestamp_type) == (codec, timestamp_type)
    names = ("is_transactional", "is_control", "has_delete_horizon")
    assert tuple(name for name in names if getattr(header, name)) == flags


@pytest.mark.parametrize(
    ("sequence", "by", "expected"),
    [(0, 1, 1), (2**31 - 2, 1, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2)],
)
def test_sequences_wrap_from_the_greatest_to_zero(sequence, by, expected):
    assert increment_sequence(sequence, by) == expected


def test_last_sequence_wraps_and_is_minus_one_without_a_base_sequence():
    records = [Record(), Record(), Record()]
    wrapping = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert BatchHeader(wrapping).last_sequence == 0
    assert BatchHeader(build_batch(records)).last_sequence == -1


def test_split_yields_views_of_each_batch_without_copying():
    buffer = bytearray(one_record_batch() + one_record_batch(1))
    split = list(split_batches(buffer))
    assert [header.base_offset for header, _ in split] == [0, 1]
    assert b"".join(batch for _, batch in split) == buffer
    buffer[-1] ^= 1
    assert split[1][1][-1] == buffer[-1]


def test_split_drops_an_incomplete_batch_at_the_end():
    batch = bytes(one_record_batch())
    for cut in range(len(batch)):
        assert len(list(split_batches(batch + batch[:cut]))) == 1
    assert list(split_batches(b"")) == []


def test_split_refuses_a_length_below_the_smallest_batch():
    batch = one_record_batch()
    second = bytearray(batch)
    second[8:12] = (48).to_bytes(4, "big")
    with pytest.raises(CorruptBatchError, match="batch length 48, less than 49") as caught:
        list(split_batches(batch + second))
    assert caught.value.byte == len(batch) + 8


def test_split_refuses_a_negative_length():
    batch = one_record_batch()
    batch[8:12] = b"\xff\xff\xff\xff"
    with pytest.raises(CorruptBatchError, match="batch length -1"):
        list(split_batches(batch))


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_split_refuses_other_message_formats(magic):
    batch = one_record_batch()
    batch[16] = magic
    with pytest.raises(UnsupportedMagicError) as caught:
        list(split_batches(batch))
    assert (caught.value.magic, caught.value.byte) == (magic, 16)


@pytest.mark.covers("S120")
def test_every_flipped_bit_after_the_checksum_is_noticed():
    for position in range(17, len(TRANSACTIONAL_BATCH)):
        batch = bytearray(TRANSACTIONAL_BATCH)
        batch[position] ^= 0x10
        assert not crc_matches(batch)
        with pytest.raises(CorruptBatchError, match=r"^byte 17: crc-32c 0x"):
            check_crc(batch)


def test_offset_and_epoch_are_patched_in_place_outside_the_checksum():
    buffer = bytearray(b"\0" * 5 + TRANSACTIONAL_BATCH)
    set_offset_and_epoch(memoryview(buffer), 1234, 9, 5)
    header = BatchHeader(buffer, 5)
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (1234, 9, 1235)
    check_crc(buffer, 5)
    set_base_offset(buffer, 7, 5)
    set_leader_epoch(buffer, -1, 5)
    assert (BatchHeader(buffer, 5).base_offset, BatchHeader(buffer, 5).leader_epoch) == (7, -1)
    assert buffer[5 + 16 :] == TRANSACTIONAL_BATCH[16:]


def test_append_time_replaces_the_timestamp_of_every_record_and_renews_the_checksum():
    batch = bytearray(TRANSACTIONAL_BATCH)
    set_max_timestamp(batch, TimestampType.LOG_APPEND_TIME, 42)
    header = BatchHeader(batch)
    check_crc(batch)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional
    assert [record.timestamp for record in iter_records(header, batch)] == [42, 42]


def test_setting_the_same_timestamps_changes_no_byte_not_even_a_wrong_checksum():
    batch = bytearray(TRANSACTIONAL_BATCH)
    batch[17] ^= 1
    before = bytes(batch)
    set_max_timestamp(batch, TimestampType.CREATE_TIME, 1_700_000_000_005)
    assert batch == before


@hypothesis.given(record_lists, st.integers(0, 2**40), st.integers(-1, 1000))
def test_a_built_batch_is_split_checked_and_patched_back(records, offset, epoch):
    original = build_batch(records)
    batch = bytearray(original)
    set_offset_and_epoch(batch, offset, epoch)
    [(header, view)] = split_batches(batch)
    check_crc(view)
    assert (header.base_offset, header.leader_epoch, header.count) == (offset, epoch, len(records))
    assert header.max_timestamp == max(record.timestamp for record in records)
    set_offset_and_epoch(batch, 0, -1)
    assert batch == original
