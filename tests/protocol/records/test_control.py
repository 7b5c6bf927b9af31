from __future__ import annotations

import pytest

from mockbroker_protocol.records import (
    BatchHeader,
    CompressionType,
    ControlType,
    DecompressedTooLargeError,
    EndTransactionMarker,
    InvalidRecordError,
    Record,
    build_batch,
    build_marker,
    check_crc,
    parse_control_type,
    parse_marker,
    read_control,
)
from tests.protocol.records.vectors import COMMIT_MARKER


@pytest.mark.covers("S319")
def test_a_commit_marker_has_the_bytes_that_kafka_writes():
    built = build_marker(
        ControlType.COMMIT,
        producer_id=7,
        producer_epoch=1,
        coordinator_epoch=3,
        timestamp=1_700_000_001_000,
        base_offset=10,
        leader_epoch=4,
    )
    assert built == COMMIT_MARKER


@pytest.mark.covers("S319")
@pytest.mark.parametrize("control_type", [ControlType.ABORT, ControlType.COMMIT])
def test_a_marker_is_a_transactional_control_batch_of_one_record(control_type):
    batch = build_marker(
        control_type, producer_id=2, producer_epoch=5, coordinator_epoch=8, timestamp=99
    )
    header = BatchHeader(batch)
    check_crc(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.count, header.base_sequence, header.max_timestamp) == (1, -1, 99)
    marker = parse_marker(read_control(header, batch))
    assert marker == EndTransactionMarker(control_type, 8)


def test_later_versions_with_longer_keys_and_values_are_read():
    record = Record(key=b"\0\1\0\0more", value=b"\0\2\0\0\0\x09more")
    assert parse_marker(record) == EndTransactionMarker(ControlType.ABORT, 9)


def test_unknown_control_types_are_no_error():
    assert parse_control_type(b"\0\0\0\x63") is ControlType.UNKNOWN
    assert parse_control_type(b"\0\0\0\2") is ControlType.LEADER_CHANGE


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_a_control_key_that_is_short_or_negative_is_refused(key):
    with pytest.raises(InvalidRecordError, match="control record"):
        parse_control_type(key)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\0\0\0\2", b"\0\0\0\0\0\0", "LEADER_CHANGE ends no transaction"),
        (b"\0\0\0\1", None, "at least 6 bytes"),
        (b"\0\0\0\1", b"\0\0\0\0\0", "at least 6 bytes"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0", "version -1"),
    ],
)
def test_a_record_that_is_no_whole_marker_is_refused(key, value, reason):
    with pytest.raises(InvalidRecordError, match=reason):
        parse_marker(Record(key=key, value=value))


def test_a_control_batch_has_one_record():
    batch = build_batch([Record(key=b"\0\0\0\1"), Record()], control=True)
    with pytest.raises(InvalidRecordError, match="control batch of 2 records"):
        read_control(BatchHeader(batch), batch)


def test_a_control_batch_that_expands_is_refused_before_it_takes_memory():
    """Markers are tiny; any other batch may have 32 MiB when decompressed."""
    batch = build_batch([Record(0, 0, b"k", bytes(100_000))], codec=CompressionType.GZIP)
    with pytest.raises(DecompressedTooLargeError, match="more than 65536 bytes"):
        read_control(BatchHeader(batch), batch)
