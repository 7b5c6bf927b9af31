"""What a leader checks in a client's batch before it appends it (UnifiedLog, LogValidator).

The order of the checks is Kafka's, because it decides which error a batch with two faults gets:
base offset, size, checksum, codec, the counts and flags of the header, and then the records.

Records are opened only when something asks for it: a compacted topic (null keys), a codec other
than the topic's, timestamps that may lie out of bounds, a batch of up to `WALKED_BYTES_MAX`, or a
broker that was told to look into every batch. A larger batch in other cases is taken at its
header's word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    CompressionError,
    CompressionType,
    InvalidRecordError,
    RecordSpan,
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
    from mockbroker.core.configs import TopicConfigs

WALKED_BYTES_MAX = 1024
LONG_MAX = (1 << 63) - 1
NO_TIMESTAMP = -1
PRODUCER_CODEC = -1  # compression.type=producer: whatever the batch came with
RECORD_ERRORS_SHOWN = 3

TARGET_CODECS = {
    "producer": PRODUCER_CODEC,
    "uncompressed": int(CompressionType.NONE),
    "gzip": int(CompressionType.GZIP),
    "snappy": int(CompressionType.SNAPPY),
    "lz4": int(CompressionType.LZ4),
    "zstd": int(CompressionType.ZSTD),
}
CODEC_MAX = int(CompressionType.ZSTD)

RecordErrors = Sequence[tuple[int, str]]


class Refusal(msgspec.Struct, frozen=True):
    """Why a batch is not appended.

    `record_errors` are (index in the batch, message) pairs (KIP-467). `tells_log_start` is whether
    the answer carries the real log start offset: Kafka knows some failures by name and answers -1
    there.
    """

    error: int
    message: str | None = None
    record_errors: RecordErrors = ()
    tells_log_start: bool = True


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
    if (
        header.count <= 0
        or header.last_offset_delta + 1 != header.count
        or attributes & CONTROL_MASK
        or (header.producer_id >= 0 and header.base_sequence < 0)
    ):
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
        walk = _Walk(batch, header, configs, now_ms, topic_partition)
        refusal = walk.run()
        if refusal is not None:
            return refusal
        max_timestamp = walk.max_timestamp
        if target not in (codec, PRODUCER_CODEC):
            batch = _recompressed(batch, header, target, renumber=not walk.consecutive)
        elif codec and not walk.consecutive:
            # Kafka sets out to renumber these, and fails on records it read without their values.
            return _UNKNOWN
        if len(batch) > configs.max_message_bytes:
            return _TOO_LARGE
    else:
        max_timestamp = header.max_timestamp
    if configs.log_append_time:
        set_max_timestamp(batch, TimestampType.LOG_APPEND_TIME, now_ms)
        header.max_timestamp = now_ms
    elif max_timestamp != header.max_timestamp or attributes & TIMESTAMP_TYPE_MASK:
        set_max_timestamp(batch, TimestampType.CREATE_TIME, max_timestamp)
        header.max_timestamp = max_timestamp
    return batch


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


class _Walk:
    """One look at every record of a batch: its key, its timestamp, its offset."""

    def __init__(
        self,
        batch: memoryview,
        header: BatchHeader,
        configs: TopicConfigs,
        now_ms: int,
        topic_partition: tuple[str, int],
    ) -> None:
        self.batch = batch
        self.header = header
        self.compacted = configs.compacted
        self.log_append_time = configs.log_append_time
        self.earliest = now_ms - configs.message_timestamp_before_max_ms
        self.latest = now_ms + configs.message_timestamp_after_max_ms
        self.topic_partition = topic_partition
        self.max_timestamp = NO_TIMESTAMP
        self.consecutive = True
        self.errors: list[tuple[int, str]] = []
        self.bad_timestamps = False

    def run(self) -> Refusal | None:
        header = self.header
        by_append = bool(header.attributes & TIMESTAMP_TYPE_MASK)
        base_timestamp = header.base_timestamp
        highest = NO_TIMESTAMP
        check_range = not self.log_append_time
        earliest, latest = self.earliest, self.latest
        try:
            payload = batch_payload(header, self.batch)
            for index, span in enumerate(scan_records(payload, header.count)):
                timestamp = (
                    header.max_timestamp if by_append else base_timestamp + span.timestamp_delta
                )
                if timestamp > highest:  # noqa: PLR1730 - once per record
                    highest = timestamp
                if span.offset_delta != index:
                    self.consecutive = False
                if self.compacted and span.key_length < 0:
                    self._null_key(index)
                elif check_range and timestamp != NO_TIMESTAMP:
                    if not earliest <= timestamp <= latest:
                        self._out_of_range(index, span.offset_delta, timestamp)
                elif by_append:
                    self._append_time(index, span, timestamp)
        except InvalidRecordError:
            return _BAD_RECORD
        except CompressionError:
            return _UNKNOWN
        self.max_timestamp = highest
        return self._refusal() if self.errors else None

    def _null_key(self, index: int) -> None:
        topic, partition = self.topic_partition
        self.errors.append(
            (
                index,
                "Compacted topic cannot accept message without key in topic partition "
                f"{topic}-{partition}",
            )
        )

    def _out_of_range(self, index: int, offset: int, timestamp: int) -> None:
        self.bad_timestamps = True
        self.errors.append(
            (
                index,
                f"Timestamp {timestamp} of message with offset {offset} is out of range. The "
                f"timestamp should be within [{self.earliest}, {self.latest}]",
            )
        )

    def _append_time(self, index: int, span: RecordSpan, timestamp: int) -> None:
        self.bad_timestamps = True
        record = (
            f"DefaultRecord(offset={span.offset_delta}, timestamp={timestamp}, "
            f"key={max(span.key_length, 0)} bytes, value={max(span.value_length, 0)} bytes)"
        )
        self.errors.append(
            (
                index,
                f"Invalid timestamp type in message {record}. Producer should not set timestamp "
                "type to LogAppendTime.",
            )
        )

    def _refusal(self) -> Refusal:
        if self.bad_timestamps:
            return Refusal(
                int(ErrorCode.INVALID_TIMESTAMP),
                "One or more records have been rejected due to invalid timestamp",
                self.errors,
            )
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{message}')"
            for index, message in self.errors[:RECORD_ERRORS_SHOWN]
        )
        return Refusal(
            int(ErrorCode.INVALID_RECORD),
            f"One or more records have been rejected due to {len(self.errors)} record errors in "
            f"total, and only showing the first three errors at most: [{shown}]",
            self.errors,
        )
