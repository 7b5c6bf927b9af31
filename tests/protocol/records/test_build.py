from __future__ import annotations

import pytest

from mockbroker_protocol.records import (
    BatchHeader,
    Record,
    TimestampType,
    build_batch,
    check_crc,
    iter_records,
    recompress,
)
from mockbroker_protocol.records.build import encode_record
from tests.protocol.records.vectors import TRANSACTIONAL_BATCH, TRANSACTIONAL_RECORDS


@pytest.mark.covers("S318")
def test_builder_makes_the_bytes_that_a_client_library_makes():
    built = build_batch(
        TRANSACTIONAL_RECORDS,
        leader_epoch=0,
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        transactional=True,
    )
    assert built == TRANSACTIONAL_BATCH


@pytest.mark.covers("S316")
def test_a_record_with_small_deltas_costs_seven_bytes_and_its_contents():
    records = [Record(timestamp=1000 + i, value=b"x") for i in range(64)]
    # length, attributes, timestamp delta, offset delta, key length, value length, header count
    assert len(build_batch(records)) == 61 + 64 * (7 + 1)


def test_base_timestamp_is_the_first_and_max_timestamp_the_greatest():
    batch = build_batch([Record(timestamp=50), Record(timestamp=90), Record(timestamp=10)])
    header = BatchHeader(batch)
    assert (header.base_timestamp, header.max_timestamp) == (50, 90)
    assert [record.timestamp for record in iter_records(header, batch)] == [50, 90, 10]


def test_append_time_is_the_timestamp_of_all_records():
    batch = build_batch(
        [Record(timestamp=50), Record(timestamp=90)],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        append_time=77,
    )
    header = BatchHeader(batch)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 77)
    assert [record.timestamp for record in iter_records(header, batch)] == [77, 77]


def test_an_emptied_batch_keeps_its_offsets_and_its_producer_state():
    batch = build_batch(
        [], base_offset=20, last_offset=29, producer_id=3, producer_epoch=2, base_sequence=100
    )
    header = BatchHeader(batch)
    assert len(batch) == 61
    assert (header.count, header.last_offset, header.last_sequence) == (0, 29, 109)
    check_crc(batch)
    assert list(iter_records(header, batch)) == []


def test_an_empty_batch_needs_its_last_offset():
    with pytest.raises(ValueError, match="needs its last offset"):
        build_batch([])


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("to", range(5))
def test_recompressing_changes_the_codec_and_nothing_else(codec, to):
    records = [Record(i, 100 + i, b"key", b"value" * 50) for i in range(30)]
    batch = build_batch(
        records, codec=codec, leader_epoch=6, producer_id=7, producer_epoch=1, base_sequence=5
    )
    rebuilt = recompress(batch, to)
    before, after = BatchHeader(batch), BatchHeader(rebuilt)
    check_crc(rebuilt)
    assert (after.codec, after.size) == (to, len(rebuilt))
    assert list(iter_records(after, rebuilt)) == records
    for field in ("base_offset", "leader_epoch", "last_offset_delta", "base_timestamp"):
        assert getattr(after, field) == getattr(before, field)
    for field in ("max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count"):
        assert getattr(after, field) == getattr(before, field)


def test_recompressing_does_not_touch_the_original():
    batch = bytes(build_batch([Record(value=b"v" * 1000)]))
    before = bytes(batch)
    recompress(batch, 4)
    assert batch == before


def varint(value: int) -> bytes:
    zig_zag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zig_zag > 0x7F:
        out.append(zig_zag & 0x7F | 0x80)
        zig_zag >>= 7
    return bytes((*out, zig_zag))


@pytest.mark.parametrize("offset_delta", [0, 63, 64])
@pytest.mark.parametrize("timestamp_delta", [-1, 0, 63, 64])
@pytest.mark.parametrize("key", [None, b"", b"k" * 10])
@pytest.mark.parametrize("value", [None, b"", b"v" * 47, b"v" * 48, b"v" * 57, b"v" * 58])
@pytest.mark.parametrize("headers", [(), (("h", b"1"),)])
def test_a_record_is_its_numbers_and_its_contents_whatever_they_take(
    offset_delta, timestamp_delta, key, value, headers
):
    out = bytearray()
    encode_record(out, offset_delta, timestamp_delta, Record(0, 0, key, value, headers))
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta)
    for blob in (key, value):
        body += varint(-1) if blob is None else varint(len(blob)) + blob
    body += varint(len(headers))
    for name, content in headers:
        body += varint(len(name)) + name.encode() + varint(len(content)) + content
    assert bytes(out) == varint(len(body)) + body
