from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from mockbroker_protocol.records import (
    BatchHeader,
    InvalidRecordError,
    Record,
    RecordsError,
    TooManyHeadersError,
    build_batch,
    iter_records,
    scan_records,
)
from mockbroker_protocol.records.build import encode_record
from mockbroker_protocol.records.record import (
    HEADERS_MAX,
    read_varint,
    read_varlong,
    write_varint,
)
from tests.protocol.records.outcome import error_in
from tests.protocol.records.strategies import numbered, record_lists
from tests.protocol.records.vectors import TRANSACTIONAL_BATCH, TRANSACTIONAL_RECORDS

VARINTS = {
    0: "00",
    1: "02",
    -1: "01",
    -2: "03",
    63: "7e",
    -64: "7f",
    64: "8001",
    127: "fe01",
    -127: "fd01",
    128: "8002",
    -128: "ff01",
    300: "d804",
    8191: "fe7f",
    2147483647: "feffffff0f",
    -2147483648: "ffffffff0f",
}


def varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


def payload_of(*records: Record) -> bytes:
    out = bytearray()
    for index, record in enumerate(records):
        encode_record(out, index, 0, record)
    return bytes(out)


@pytest.mark.covers("S314", "S316")
@pytest.mark.parametrize(("value", "encoded"), VARINTS.items())
def test_varints_are_zig_zag_low_group_first(value, encoded):
    assert varint(value).hex() == encoded
    assert read_varint(b"\xff" + bytes.fromhex(encoded) + b"\xff", 1) == (
        value,
        1 + len(encoded) // 2,
    )


@pytest.mark.covers("S314")
@hypothesis.given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_round_trip_over_64_bits(value):
    encoded = varint(value)
    assert len(encoded) <= 10
    assert read_varlong(encoded, 0) == (value, len(encoded))


def test_a_varint_has_at_most_five_bytes_and_a_varlong_ten():
    with pytest.raises(InvalidRecordError, match=r"^byte 0: a varint of more than 5 bytes$"):
        read_varint(b"\x80" * 9 + b"\x01", 0)
    assert read_varlong(b"\x80" * 9 + b"\x00", 0) == (0, 10)
    with pytest.raises(InvalidRecordError, match="more than 10 bytes"):
        read_varlong(b"\x80" * 11, 0)


def test_a_cut_varint_says_where_the_payload_ends():
    with pytest.raises(InvalidRecordError, match=r"^byte 3: the payload ends inside a varint$"):
        read_varint(b"\x00\x80\x80", 1)


@pytest.mark.covers("S317")
def test_records_of_a_client_s_batch_have_keys_values_headers_and_nulls():
    batch = TRANSACTIONAL_BATCH
    assert list(iter_records(BatchHeader(batch), batch)) == TRANSACTIONAL_RECORDS


@pytest.mark.covers("S317")
@hypothesis.given(record_lists, st.integers(0, 2**40), st.sampled_from(range(5)))
def test_records_round_trip_with_every_codec(records, base_offset, codec):
    batch = build_batch(records, base_offset=base_offset, codec=codec)
    header = BatchHeader(batch)
    assert header.codec == codec
    assert list(iter_records(header, memoryview(batch))) == numbered(records, base_offset)


def test_null_and_empty_are_different():
    records = [Record(0, key=None, value=b""), Record(1, key=b"", value=None)]
    batch = build_batch(records)
    assert list(iter_records(BatchHeader(batch), batch)) == records


def test_header_keys_that_are_no_utf_8_survive_a_round_trip():
    record = Record(headers=((b"\xff\xfe".decode("utf-8", "surrogateescape"), b"x"),))
    payload = payload_of(record)
    assert b"\xff\xfe" in payload
    [span] = scan_records(payload, 1)
    assert span.headers == record.headers


def test_records_come_one_at_a_time():
    good = payload_of(Record(value=b"first"))
    batch = build_batch([Record(value=b"first"), Record(value=b"second")])
    batch[-3:] = b"\x7f\x7f\x7f"
    records = iter_records(BatchHeader(batch), batch)
    assert next(records).value == b"first"
    with pytest.raises(InvalidRecordError) as caught:
        next(records)
    assert caught.value.byte >= len(good)


def test_offset_deltas_may_have_holes():
    records = [Record(10, 1), Record(15, 2), Record(40, 3)]
    batch = build_batch(records, base_offset=10, keep_offsets=True, last_offset=45)
    header = BatchHeader(batch)
    assert (header.count, header.last_offset) == (3, 45)
    assert list(iter_records(header, batch)) == records


@pytest.mark.parametrize(
    ("payload", "byte", "reason"),
    [
        ("0a00000001", 0, "record length 5, less than 6"),
        ("01", 0, "record length -1, less than 6"),
        ("0e0000000101", 0, "a record of 7 bytes, but 5 are left"),
        ("0c000000640100", 4, "key of 50 bytes, but 2 are left"),
        ("0c000000016400", 5, "value of 50 bytes, but 1 are left"),
        ("0c000000010101", 6, "header count -1"),
        ("0c000000010164", 6, "header count 50"),
        ("0e00000001010000", 0, "record length 7, but its fields take 6 bytes"),
        ("100000000101020101", 7, "null header key"),
        ("0e00000001010264", 7, "header key of 50 bytes, but 0 are left"),
        ("0c000000010100" + "00", 7, "1 bytes after the 1 records"),
        ("", 0, "the batch ends after 0 of its 1 records"),
    ],
)
def test_broken_records_are_refused_with_the_byte_and_the_reason(payload, byte, reason):
    with pytest.raises(InvalidRecordError) as caught:
        list(scan_records(bytes.fromhex(payload), 1))
    assert (caught.value.reason, caught.value.byte) == (reason, byte)


def test_fewer_records_than_the_header_counts_are_an_error():
    with pytest.raises(InvalidRecordError, match="ends after 1 of its 3 records"):
        list(scan_records(payload_of(Record()), 3))


def test_the_headers_of_a_batch_are_limited_whatever_records_they_are_in():
    """A few KB of gzip hold a record of a million headers, which takes a second and 100 MB."""
    half = Record(headers=(("", None),) * (HEADERS_MAX // 2))
    assert len(list(scan_records(payload_of(half, half), 2))) == 2
    more = Record(headers=(("", None),))
    with pytest.raises(TooManyHeadersError, match="a batch of too many headers"):
        list(scan_records(payload_of(half, half, more), 3))
    list(scan_records(payload_of(half, half, more), 3, headers_max=HEADERS_MAX + 1))


def test_a_negative_key_length_counts_as_null_as_in_kafka():
    [span] = scan_records(bytes.fromhex("0c000000030500"), 1)
    assert (span.key_length, span.value_length) == (-1, -1)


@pytest.mark.parametrize("codec", range(5))
def test_truncations_and_flips_of_the_payload_give_records_or_a_clean_error(codec):
    records = [
        Record(timestamp=1000 * i, key=b"key", value=b"value" * i, headers=(("h", b"x"),))
        for i in range(8)
    ]
    batch = build_batch(records, codec=codec)
    for position in range(61, len(batch)):
        for flip in (0x01, 0x80, 0xFF):
            broken = bytearray(batch)
            broken[position] ^= flip
            header = BatchHeader(broken)
            error = error_in(lambda h=header, b=broken: list(iter_records(h, b)))
            assert error is None or (error.byte >= 0 and error.reason)
        cut = bytearray(batch[:position])
        cut[8:12] = (position - 12).to_bytes(4, "big")
        with pytest.raises(RecordsError):
            list(iter_records(BatchHeader(cut), cut))
