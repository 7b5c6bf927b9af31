"""The validation of a client's batch before its append (UnifiedLog, LogValidator).

The order of the checks is Kafka's, because it decides the error of a batch with two faults: base
offset, size, checksum, codec, the counts and flags of the header, and then the records.

Records are decoded only for a reason: a compacted topic (null keys), a codec other than the
topic's, timestamps that may be out of bounds, a batch of at most `WALKED_BYTES_MAX` bytes, or a
config that requires it for each batch. For other batches the header is trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.limits import (
    BATCH_DECOMPRESSED_BYTES_MAX,
    BATCH_RECORDS_MAX,
    BatchLimits,
)
from mockbroker.core.log.record_errors import BatchRefusal, validate_records
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    CompressionError,
    CompressionType,
    DecompressedTooLargeError,
    InvalidRecordError,
    TimestampType,
    TooManyHeadersError,
    batch_payload,
    build_batch,
    iter_records,
    recompress,
    scan_records,
    set_max_timestamp,
)
from mockbroker_protocol.records.batch import (
    CODEC_MASK,
    CONTROL_MASK,
    TIMESTAMP_TYPE_MASK,
    compute_crc,
)

if TYPE_CHECKING:
    from mockbroker.core.configs.values import TopicConfigs

WALKED_BYTES_MAX = 1024
LONG_MAX = (1 << 63) - 1
NO_TIMESTAMP = -1
PRODUCER_CODEC = -1  # compression.type=producer: the batch keeps its codec

TARGET_CODECS = {
    "producer": PRODUCER_CODEC,
    "uncompressed": int(CompressionType.NONE),
    "gzip": int(CompressionType.GZIP),
    "snappy": int(CompressionType.SNAPPY),
    "lz4": int(CompressionType.LZ4),
    "zstd": int(CompressionType.ZSTD),
}
CODEC_MAX = int(CompressionType.ZSTD)

_BAD_RECORD = BatchRefusal(int(ErrorCode.INVALID_RECORD))
_TOO_LARGE = BatchRefusal(int(ErrorCode.MESSAGE_TOO_LARGE), has_log_start_offset=False)
_TOO_MANY_RECORDS = BatchRefusal(
    int(ErrorCode.MESSAGE_TOO_LARGE),
    f"The batch has more records, or more headers, than {BATCH_RECORDS_MAX} allows.",
    has_log_start_offset=False,
    limit=BATCH_RECORDS_MAX,
)
_DECOMPRESSED_TOO_LARGE = BatchRefusal(
    int(ErrorCode.MESSAGE_TOO_LARGE),
    f"The batch has more bytes when decompressed than {BATCH_DECOMPRESSED_BYTES_MAX} allows.",
    has_log_start_offset=False,
    limit=BATCH_DECOMPRESSED_BYTES_MAX,
)
_CORRUPT = BatchRefusal(int(ErrorCode.CORRUPT_MESSAGE), has_log_start_offset=False)
_UNKNOWN = BatchRefusal(int(ErrorCode.UNKNOWN_SERVER_ERROR))
RECORD_LIST_TOO_LARGE = BatchRefusal(
    int(ErrorCode.RECORD_LIST_TOO_LARGE), has_log_start_offset=False
)


def validate_batch(
    batch: memoryview,
    header: BatchHeader,
    configs: TopicConfigs,
    now_ms: int,
    *,
    topic_partition: tuple[str, int],
    walk_always: bool,
    limits: BatchLimits,
) -> memoryview | BatchRefusal:
    """The batch to append, or its errors.

    `batch` is one whole, writable batch of message format v2 and `header` its header. The result is
    `batch`, or a recompressed copy. Timestamp type, max timestamp and checksum may be patched;
    `header` then has the patched values.
    """
    if header.base_offset != 0:
        return _BAD_RECORD
    size = len(batch)
    if size > configs.max_message_bytes:
        return _TOO_LARGE
    if size < HEADER_SIZE or compute_crc(batch) != header.crc:
        return _CORRUPT
    attributes = header.attributes
    codec = attributes & CODEC_MASK
    if codec > CODEC_MAX:
        return _UNKNOWN
    if _is_invalid(header):
        return _BAD_RECORD
    if header.count > limits.records:
        return _TOO_MANY_RECORDS
    target = TARGET_CODECS[configs.compression_type]
    if (
        size <= WALKED_BYTES_MAX
        or walk_always
        or configs.compacted
        or target not in (codec, PRODUCER_CODEC)
        or (not configs.log_append_time and _may_be_out_of_bounds(header, configs, now_ms))
        or (attributes & TIMESTAMP_TYPE_MASK and configs.log_append_time)
    ):
        validated = _validate_with_records(batch, header, configs, now_ms, topic_partition, limits)
        if isinstance(validated, BatchRefusal):
            return validated
        batch, max_timestamp = validated
    else:
        max_timestamp = header.max_timestamp
    if configs.log_append_time:
        set_max_timestamp(batch, TimestampType.LOG_APPEND_TIME, now_ms)
        header.max_timestamp = now_ms
    elif max_timestamp != header.max_timestamp or attributes & TIMESTAMP_TYPE_MASK:
        set_max_timestamp(batch, TimestampType.CREATE_TIME, max_timestamp)
        header.max_timestamp = max_timestamp
    return batch


def _validate_with_records(
    batch: memoryview,
    header: BatchHeader,
    configs: TopicConfigs,
    now_ms: int,
    topic_partition: tuple[str, int],
    limits: BatchLimits,
) -> tuple[memoryview, int] | BatchRefusal:
    """Validate the records: the batch in the topic's codec, and its actual max timestamp."""
    try:
        summary = _walk(batch, header, limits)
    except TooManyHeadersError:
        return _TOO_MANY_RECORDS
    except DecompressedTooLargeError:
        return _DECOMPRESSED_TOO_LARGE
    except InvalidRecordError:
        return _BAD_RECORD
    except CompressionError:
        return _UNKNOWN
    if not summary.is_valid(configs, now_ms):
        refusal = validate_records(batch, header, configs, now_ms, topic_partition)
        if refusal is not None:
            return refusal
    codec = header.attributes & CODEC_MASK
    target = TARGET_CODECS[configs.compression_type]
    if target not in (codec, PRODUCER_CODEC):
        batch = _recompressed(batch, header, target, renumber=not summary.consecutive)
        if len(batch) > configs.max_message_bytes:
            return _TOO_LARGE
    elif codec and not summary.consecutive:
        # Kafka tries to renumber these records and fails, because it has skipped their values.
        return _UNKNOWN
    return batch, max(summary.latest, NO_TIMESTAMP)


def _is_invalid(header: BatchHeader) -> bool:
    """Whether the header is invalid in a client's batch (LogValidator.validateBatch)."""
    return (
        header.count <= 0
        or header.last_offset_delta + 1 != header.count
        or bool(header.attributes & CONTROL_MASK)
        or (header.producer_id >= 0 and header.base_sequence < 0)
    )


def _may_be_out_of_bounds(header: BatchHeader, configs: TopicConfigs, now_ms: int) -> bool:
    """Whether a record may be outside the topic's timestamp bounds.

    The header does not have the earliest timestamp, so a lower bound requires the records.
    """
    if header.max_timestamp == NO_TIMESTAMP:
        return bool(header.attributes & TIMESTAMP_TYPE_MASK)
    return (
        header.max_timestamp - now_ms > configs.message_timestamp_after_max_ms
        or configs.message_timestamp_before_max_ms != LONG_MAX
    )


def _recompressed(
    batch: memoryview, header: BatchHeader, codec: int, *, renumber: bool
) -> memoryview:
    """The batch with another codec; `renumber` closes gaps between the offsets of its records."""
    if not renumber:
        return memoryview(recompress(batch, codec))
    return memoryview(
        build_batch(
            iter_records(header, batch),
            codec=codec,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
        )
    )


class _RecordSummary(msgspec.Struct, frozen=True, gc=False):
    """A summary of the records of a batch. Timestamps are in ms."""

    earliest: int
    latest: int
    keyless: bool
    consecutive: bool
    by_append: bool

    def is_valid(self, configs: TopicConfigs, now_ms: int) -> bool:
        """Whether all records are valid; if not, each record has to be validated."""
        if self.keyless and configs.compacted:
            return False
        if configs.log_append_time:
            return not self.by_append
        if self.by_append and self.latest == NO_TIMESTAMP:
            return False
        return (
            self.latest - now_ms <= configs.message_timestamp_after_max_ms
            and now_ms - self.earliest <= configs.message_timestamp_before_max_ms
        )


def _walk(batch: memoryview, header: BatchHeader, limits: BatchLimits) -> _RecordSummary:
    """Decode all records. Raises InvalidRecordError and CompressionError."""
    latest = earliest = None
    keyless = False
    consecutive = True
    payload = batch_payload(header, batch, decompressed_bytes_max=limits.decompressed_bytes)
    for index, span in enumerate(scan_records(payload, header.count, headers_max=limits.records)):
        delta = span.timestamp_delta
        if latest is None or earliest is None:
            latest = earliest = delta
        elif delta > latest:
            latest = delta
        elif delta < earliest:
            earliest = delta
        if span.key_length < 0:
            keyless = True
        if span.offset_delta != index:
            consecutive = False
    if header.attributes & TIMESTAMP_TYPE_MASK:
        timestamp = header.max_timestamp
        return _RecordSummary(timestamp, timestamp, keyless, consecutive, True)
    base = header.base_timestamp
    return _RecordSummary(base + (earliest or 0), base + (latest or 0), keyless, consecutive, False)
