"""What a leader makes of a client's batch: the errors in Kafka's order, and what it rewrites."""

from __future__ import annotations

import random

import pytest

from mockbroker.core.limits import BATCH_DECOMPRESSED_BYTES_MAX, BATCH_RECORDS_MAX, BatchLimits
from mockbroker.core.log import validation
from mockbroker.core.log.record_errors import BatchRefusal
from mockbroker.core.log.validation import validate_batch
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import (
    BatchHeader,
    CompressionType,
    Record,
    TimestampType,
    batch_payload,
    build_batch,
    crc_matches,
    iter_records,
    update_crc,
)
from mockbroker_protocol.records.compression import DECOMPRESSED_BYTES_MAX
from tests.support.requests import NOW_MS, Node, batch_of, timed_batch

HOUR_MS = 3_600_000
LARGE = random.Random(3).randbytes(2000)  # stays large when compressed


def judge(
    batch: bytearray,
    *,
    walk_always: bool = False,
    records_max: int = 1_000,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    **configs: str,
) -> memoryview | BatchRefusal:
    partition = Node().topic(**configs)
    view = memoryview(batch)
    return validate_batch(
        view,
        BatchHeader(view),
        partition.topic.configs,
        NOW_MS,
        topic_partition=("t", 0),
        walk_always=walk_always,
        limits=BatchLimits(records_max, decompressed_bytes_max),
    )


def refused(batch: bytearray, **configs: str) -> BatchRefusal:
    verdict = judge(batch, **configs)
    assert isinstance(verdict, BatchRefusal)
    return verdict


def error_of(batch: bytearray, **configs: str) -> ErrorCode:
    return ErrorCode(refused(batch, **configs).error)


def accepted(batch: bytearray, **more) -> BatchHeader:
    verdict = judge(batch, **more)
    assert not isinstance(verdict, BatchRefusal), verdict
    assert crc_matches(verdict)
    return BatchHeader(verdict)


def patched(batch: bytearray, at: int, raw: bytes) -> bytearray:
    batch[at : at + len(raw)] = raw
    update_crc(batch)
    return batch


def test_a_sound_batch_is_accepted_as_it_is():
    batch = batch_of(b"a", b"b")
    before = bytes(batch)
    accepted(batch)
    assert bytes(batch) == before


@pytest.mark.covers("S120")
def test_a_flipped_byte_is_corruption():
    batch = batch_of(LARGE)
    batch[500] ^= 1
    verdict = refused(batch)
    assert verdict.error == ErrorCode.CORRUPT_MESSAGE
    assert not verdict.has_log_start_offset


@pytest.mark.covers("S107")
def test_a_batch_above_max_message_bytes_is_too_large():
    batch = batch_of(LARGE)
    assert error_of(batch, max_message_bytes=str(len(batch) - 1)) is ErrorCode.MESSAGE_TOO_LARGE
    accepted(batch, max_message_bytes=str(len(batch)))


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(batch_of(b"a", base_offset=1), id="base offset"),
        pytest.param(patched(batch_of(b"a"), 57, b"\0\0\0\0"), id="no records"),
        pytest.param(batch_of(last_offset=0), id="only a header"),
        pytest.param(patched(batch_of(last_offset=0), 23, b"\xff" * 4), id="no offsets"),
        pytest.param(patched(batch_of(b"a"), 57, b"\0\0\0\2"), id="count above offsets"),
        pytest.param(patched(batch_of(b"a"), 23, b"\xff\xff\xff\xff"), id="negative delta"),
        pytest.param(batch_of(b"a", control=True), id="control batch"),
        pytest.param(batch_of(b"a", producer_id=1, producer_epoch=0), id="no sequence"),
        pytest.param(batch_of(b"a", producer_id=0, producer_epoch=0), id="producer 0, no sequence"),
    ],
)
def test_an_impossible_header_is_an_invalid_record(batch):
    verdict = refused(batch)
    assert verdict.error == ErrorCode.INVALID_RECORD
    assert verdict.has_log_start_offset
    assert verdict.record_errors == ()


def test_the_base_offset_is_looked_at_before_the_size_and_the_size_before_the_checksum():
    batch = batch_of(LARGE, base_offset=1)
    batch[500] ^= 1
    assert error_of(batch, max_message_bytes="100") is ErrorCode.INVALID_RECORD
    batch[7] = 0
    assert error_of(batch, max_message_bytes="100") is ErrorCode.MESSAGE_TOO_LARGE
    assert error_of(batch) is ErrorCode.CORRUPT_MESSAGE


def test_an_unassigned_codec_is_an_unknown_server_error():
    assert error_of(patched(batch_of(LARGE), 22, b"\x05")) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_batch_of_more_records_than_allowed_is_too_large():
    """Java's producer splits it."""
    batch = batch_of(*[b"v"] * 3)
    verdict = refused(bytearray(batch), records_max=2)
    assert verdict.error == ErrorCode.MESSAGE_TOO_LARGE
    assert verdict.limit == BATCH_RECORDS_MAX
    accepted(batch, records_max=3)


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.ZSTD])
def test_a_batch_that_expands_beyond_the_limit_is_too_large_where_it_is_opened(codec):
    batch = batch_of(bytes(DECOMPRESSED_BYTES_MAX), codec=codec)
    assert len(batch) < DECOMPRESSED_BYTES_MAX // 500
    verdict = refused(batch, compression_type="snappy")
    assert verdict.error == ErrorCode.MESSAGE_TOO_LARGE
    assert verdict.limit == BATCH_DECOMPRESSED_BYTES_MAX


def test_the_limit_of_decompressed_bytes_is_that_of_the_config():
    batch = batch_of(bytes(900), codec=CompressionType.GZIP)
    payload = len(batch_payload(BatchHeader(batch), batch))
    accepted(bytearray(batch), decompressed_bytes_max=payload)
    verdict = refused(batch, decompressed_bytes_max=payload - 1)
    assert (verdict.error, verdict.has_log_start_offset) == (ErrorCode.MESSAGE_TOO_LARGE, False)
    assert verdict.limit == BATCH_DECOMPRESSED_BYTES_MAX


def test_records_of_a_large_batch_without_timestamps_are_not_read():
    """Not by default: what they hold is found by those who read them."""
    batch = build_batch([Record(0, -1, b"k", LARGE)])
    accepted(patched(batch, len(batch) - 1, b"\x02"))


def test_records_may_have_as_many_headers_in_all_as_a_batch_may_have_records():
    """They count where the records are opened."""
    for count, limit in ((3, None), (4, BATCH_RECORDS_MAX)):
        headers = (("", None),) * (count - 1)
        records = [
            Record(0, NOW_MS, b"k", None, headers),
            Record(1, NOW_MS, b"k", None, (("", None),)),
        ]
        verdict = judge(build_batch(records), records_max=3)
        found = verdict if isinstance(verdict, BatchRefusal) else None
        assert (found and found.limit) == limit
        assert (found is None) or found.error == ErrorCode.MESSAGE_TOO_LARGE


# -- records ---------------------------------------------------------------------------------------


def test_null_keys_are_refused_on_a_compacted_topic_each_by_name():
    batch = build_batch([Record(0, 1, None, b"v"), Record(1, 1, b"k", b"v"), Record(2, 1, None)])
    verdict = refused(batch, cleanup_policy="compact")
    assert verdict.error == ErrorCode.INVALID_RECORD
    assert [index for index, _ in verdict.record_errors] == [0, 2]
    assert verdict.message is not None
    assert verdict.message.startswith(
        "One or more records have been rejected due to 2 record errors in total"
    )
    accepted(batch_of(LARGE), cleanup_policy="compact")


def test_a_timestamp_too_far_ahead_is_refused_wherever_it_stands():
    late = NOW_MS + HOUR_MS + 1
    for size in (10, 3000):
        records = [Record(0, NOW_MS, b"k", b"v" * size), Record(1, late, b"k", b"v")]
        verdict = refused(build_batch(records))
        assert verdict.error == ErrorCode.INVALID_TIMESTAMP
        ((index, message),) = verdict.record_errors
        assert index == 1
        assert message.startswith(f"Timestamp {late} of message with offset 1 is out of range.")
    accepted(timed_batch(NOW_MS + HOUR_MS))
    accepted(timed_batch(late), message_timestamp_after_max_ms=str(2 * HOUR_MS))


def test_a_timestamp_too_far_back_is_refused_where_the_topic_says_so():
    batch = build_batch([Record(0, NOW_MS, b"k", LARGE), Record(1, NOW_MS - 1001, b"k", b"v")])
    accepted(bytearray(batch))
    verdict = refused(batch, message_timestamp_before_max_ms="1000")
    assert [index for index, _ in verdict.record_errors] == [1]


@pytest.mark.parametrize("field", ["before", "after"])
def test_a_timestamp_at_the_bound_is_accepted(field):
    away = -1000 if field == "before" else 1000
    bound = {f"message_timestamp_{field}_max_ms": "1000"}
    accepted(timed_batch(NOW_MS + away), **bound)
    refused(timed_batch(NOW_MS + away * 1001 // 1000), **bound)


def test_no_timestamp_is_fine():
    accepted(timed_batch(-1), message_timestamp_before_max_ms="1000")


def test_a_wrong_max_timestamp_is_put_right_where_records_are_walked():
    batch = patched(timed_batch(5, 9, 7), 35, (8).to_bytes(8, "big"))
    assert accepted(batch).max_timestamp == 9


def test_large_batches_are_taken_at_their_word():
    batch = patched(batch_of(LARGE, timestamp=5), 35, (8).to_bytes(8, "big"))
    assert accepted(bytearray(batch)).max_timestamp == 8
    assert accepted(bytearray(batch), walk_always=True).max_timestamp == 5


@pytest.mark.parametrize("records", [1, 3])
def test_broken_records_are_invalid_where_they_are_walked(records):
    batch = patched(batch_of(*[b"value"] * records), 61, b"\x02")
    assert error_of(batch) is ErrorCode.INVALID_RECORD


def test_broken_records_of_a_large_batch_are_not_noticed_unless_asked_for():
    batch = patched(batch_of(LARGE), 61, b"\x02")
    accepted(bytearray(batch))
    assert error_of(batch, walk_always=True) is ErrorCode.INVALID_RECORD


def test_the_records_of_a_large_batch_are_not_touched(monkeypatch):
    """The checksum reads them as one block; nobody parses them."""

    def touched(*args: object, **more: object) -> None:
        raise AssertionError("the records were opened")

    for opener in ("batch_payload", "scan_records", "iter_records", "recompress"):
        monkeypatch.setattr(validation, opener, touched)
    accepted(batch_of(LARGE))
    accepted(batch_of(LARGE, codec=CompressionType.LZ4, producer_id=1, base_sequence=0))
    accepted(batch_of(LARGE), message_timestamp_type="LogAppendTime")
    with pytest.raises(AssertionError, match="opened"):
        judge(batch_of(LARGE), walk_always=True)


# -- rewriting -------------------------------------------------------------------------------------


@pytest.mark.covers("S122")
def test_log_append_time_stamps_the_batch_and_its_checksum():
    batch = batch_of(b"a", LARGE, timestamp=5)
    header = accepted(batch, message_timestamp_type="LogAppendTime")
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == NOW_MS
    assert {record.timestamp for record in iter_records(header, batch)} == {NOW_MS}


def test_timestamps_do_not_matter_where_the_broker_sets_them():
    accepted(timed_batch(NOW_MS + 9 * HOUR_MS), message_timestamp_type="LogAppendTime")


@pytest.mark.parametrize("value", [b"small", LARGE])
def test_an_append_time_bit_from_a_client_is_cleared_and_the_timestamps_stay(value):
    batch = batch_of(
        value, timestamp=5, timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=77
    )
    header = accepted(batch)
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert (header.base_timestamp, header.max_timestamp) == (5, 77)


def test_bits_without_a_meaning_stay_until_the_header_is_rewritten():
    def batch() -> bytearray:
        return patched(batch_of(b"a"), 21, b"\x01\x80")

    assert accepted(batch()).attributes == 0x180
    assert accepted(batch(), message_timestamp_type="LogAppendTime").attributes == 0x08
    assert accepted(batch(), compression_type="gzip").attributes == 0x01


@pytest.mark.parametrize("value", [b"small", LARGE])
def test_an_append_time_bit_from_a_client_is_refused_where_the_broker_sets_it(value):
    batch = batch_of(value, value, timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=NOW_MS)
    verdict = refused(batch, message_timestamp_type="LogAppendTime")
    assert verdict.error == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in verdict.record_errors] == [0, 1]


@pytest.mark.parametrize("value", [b"small", LARGE])
def test_an_append_time_bit_without_a_time_is_refused_everywhere(value):
    batch = batch_of(value, timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=-1)
    assert error_of(batch) is ErrorCode.INVALID_TIMESTAMP


CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4, "uncompressed": 0}


@pytest.mark.covers("S102")
@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("source", CODECS.values())
def test_a_batch_is_stored_with_the_codec_of_its_topic(source, target):
    batch = batch_of(b"a" * 50, LARGE, codec=source, producer_id=3, base_sequence=4)
    verdict = judge(batch, compression_type=target)
    assert not isinstance(verdict, BatchRefusal)
    assert crc_matches(verdict)
    header = BatchHeader(verdict)
    assert header.codec == CODECS[target]
    assert (header.producer_id, header.base_sequence) == (3, 4)
    assert [record.value for record in iter_records(header, verdict)] == [b"a" * 50, LARGE]


@pytest.mark.covers("S101")
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_any_codec_is_kept_where_the_producer_decides(codec):
    batch = batch_of(LARGE, codec=codec)
    before = bytes(batch)
    accepted(batch)
    assert bytes(batch) == before


def test_a_batch_that_grows_too_large_by_recompression_is_refused():
    batch = batch_of(LARGE, codec=CompressionType.GZIP)
    verdict = refused(batch, compression_type="uncompressed", max_message_bytes="1000")
    assert verdict.error == ErrorCode.MESSAGE_TOO_LARGE


def test_a_payload_that_cannot_be_decompressed_is_an_unknown_server_error():
    batch = patched(batch_of(b"v" * 100), 22, b"\x01")
    verdict = refused(batch)
    assert verdict.error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert verdict.has_log_start_offset


def with_holes() -> bytearray:
    """A compressed batch whose two records have offsets 0 and 5, and a header that says 0 and 1."""
    batch = build_batch(
        [Record(0, 1, b"k", b"a"), Record(5, 1, b"k", b"b")],
        codec=CompressionType.GZIP,
        keep_offsets=True,
    )
    return patched(batch, 23, (1).to_bytes(4, "big"))


def test_a_compressed_batch_whose_offsets_have_holes_is_a_server_error():
    assert error_of(with_holes()) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_holes_are_closed_where_the_batch_is_recompressed():
    verdict = judge(with_holes(), compression_type="lz4")
    assert not isinstance(verdict, BatchRefusal)
    header = BatchHeader(verdict)
    assert [record.offset for record in iter_records(header, verdict)] == [0, 1]
