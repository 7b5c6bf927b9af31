"""What a leader checks in a client's batch before it appends it (UnifiedLog, LogValidator).

The order of the checks is Kafka's, because it decides which error a batch with two faults gets:
base offset, size, checksum, codec, the counts and flags of the header, and then the records.

Records are opened only when something asks for it: a compacted topic (null keys), a codec other
than the topic's, timestamps that may lie out of bounds, a batch of up to `WALKED_BYTES_MAX`, or a
broker that was told to look into every batch. A larger batch in other cases is taken at its
header's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.log.record_errors import Refusal, judge_records
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    CompressionError,
    CompressionType,
    InvalidRecordError,
    TimestampType,
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
PRODUCER_CODEC = -1  # compression.type=producer: whatever the batch came with

TARGET_CODECS = {
    "producer": PRODUCER_CODEC,
    "uncompressed": int(CompressionType.NONE),
    "gzip": int(CompressionType.GZIP),
    "snappy": int(CompressionType.SNAPPY),
    "lz4": int(CompressionType.LZ4),
    "zstd": int(CompressionType.ZSTD),
}
CODEC_MAX = int(CompressionType.ZSTD)

_BAD_RECORD = Refusal(int(ErrorCode.INVALID_RECORD))
_TOO_LARGE = Refusal(int(ErrorCode.MESSAGE_TOO_LARGE), tells_log_start=False)
_CORRUPT = Refusal(int(ErrorCode.CORRUPT_MESSAGE), tells_log_start=False)
_UNKNOWN = Refusal(int(ErrorCode.UNKNOWN_SERVER_ERROR))
RECORD_LIST_TOO_LARGE = Refusal(int(ErrorCode.RECORD_LIST_TOO_LARGE), tells_log_start=False)


def validate_batch(
    batch: memoryview,
    header: BatchHeader,
    configs: TopicConfigs,
    now_ms: int,
    *,
    topic_partition: tuple[str, int],
    walk_always: bool,
) -> memoryview | Refusal:
    """The batch to append, or why it is refused.

    `batch` is one whole, writable batch of message format v2 and `header` its header. The result is
    the same bytes unless they had to be recompressed; timestamp type, max timestamp and checksum
    may have been patched, and `header` says what holds for the result.
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
    if _impossible(header):
        return _BAD_RECORD
    target = TARGET_CODECS[configs.compression_type]
    if (
        size <= WALKED_BYTES_MAX
        or walk_always
        or configs.compacted
        or target not in (codec, PRODUCER_CODEC)
        or (not configs.log_append_time and _suspicious(header, configs, now_ms))
        or (attributes & TIMESTAMP_TYPE_MASK and configs.log_append_time)
    ):
        opened = _open(batch, header, configs, now_ms, topic_partition)
        if isinstance(opened, Refusal):
            return opened
        batch, max_timestamp = opened
    else:
        max_timestamp = header.max_timestamp
    if configs.log_append_time:
        set_max_timestamp(batch, TimestampType.LOG_APPEND_TIME, now_ms)
        header.max_timestamp = now_ms
    elif max_timestamp != header.max_timestamp or attributes & TIMESTAMP_TYPE_MASK:
        set_max_timestamp(batch, TimestampType.CREATE_TIME, max_timestamp)
        header.max_timestamp = max_timestamp
    return batch


def _open(
    batch: memoryview,
    header: BatchHeader,
    configs: TopicConfigs,
    now_ms: int,
    topic_partition: tuple[str, int],
) -> tuple[memoryview, int] | Refusal:
    """Look into the records: the batch in the topic's codec, and its true max timestamp."""
    try:
        seen = _walk(batch, header)
    except InvalidRecordError:
        return _BAD_RECORD
    except CompressionError:
        return _UNKNOWN
    if not seen.fits(configs, now_ms):
        refusal = judge_records(batch, header, configs, now_ms, topic_partition)
        if refusal is not None:
            return refusal
    codec = header.attributes & CODEC_MASK
    target = TARGET_CODECS[configs.compression_type]
    if target not in (codec, PRODUCER_CODEC):
        batch = _recompressed(batch, header, target, renumber=not seen.consecutive)
        if len(batch) > configs.max_message_bytes:
            return _TOO_LARGE
    elif codec and not seen.consecutive:
        # Kafka sets out to renumber these, and fails on records it read without their values.
        return _UNKNOWN
    return batch, max(seen.latest, NO_TIMESTAMP)


def _impossible(header: BatchHeader) -> bool:
    """Whether the header says what no client's batch can be (LogValidator.validateBatch)."""
    return (
        header.count <= 0
        or header.last_offset_delta + 1 != header.count
        or bool(header.attributes & CONTROL_MASK)
        or (header.producer_id >= 0 and header.base_sequence < 0)
    )


def _suspicious(header: BatchHeader, configs: TopicConfigs, now_ms: int) -> bool:
    """Whether the header leaves room for a record outside of the topic's timestamp bounds.

    The header knows the latest timestamp but not the earliest, so a lower bound asks for a walk.
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


class _Seen(msgspec.Struct, frozen=True, gc=False):
    """What one walk over the records of a batch found, in sum. Timestamps are in ms."""

    earliest: int
    latest: int
    keyless: bool
    consecutive: bool
    by_append: bool

    def fits(self, configs: TopicConfigs, now_ms: int) -> bool:
        """Whether no record can be at fault; if one may be, each is judged by itself."""
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


def _walk(batch: memoryview, header: BatchHeader) -> _Seen:
    """Look at every record once. Raises InvalidRecordError and CompressionError."""
    latest = earliest = None
    keyless = False
    consecutive = True
    for index, span in enumerate(scan_records(batch_payload(header, batch), header.count)):
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
        return _Seen(header.max_timestamp, header.max_timestamp, keyless, consecutive, True)
    base = header.base_timestamp
    return _Seen(base + (earliest or 0), base + (latest or 0), keyless, consecutive, False)
