"""The errors of a batch's records, with Kafka's messages (KIP-467, LogValidator)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, RecordSpan, batch_payload, scan_records
from mockbroker_protocol.records.batch import TIMESTAMP_TYPE_MASK

if TYPE_CHECKING:
    from mockbroker.core.configs.values import TopicConfigs

NO_TIMESTAMP = -1
ERRORS_SHOWN = 3

RecordErrors = Sequence[tuple[int, str]]


class BatchRefusal(msgspec.Struct, frozen=True):
    """The errors of a batch that is not appended.

    `record_errors` are (index in the batch, message) pairs. `has_log_start_offset`: the response
    has the log start offset; for some errors Kafka returns -1. `limit` is the config of the
    protective limit that the batch exceeds.
    """

    error: int
    message: str | None = None
    record_errors: RecordErrors = ()
    has_log_start_offset: bool = True
    limit: str | None = None


def validate_records(
    batch: memoryview,
    header: BatchHeader,
    configs: TopicConfigs,
    now_ms: int,
    topic_partition: tuple[str, int],
) -> BatchRefusal | None:
    """Validate each record; returns None if all are valid.

    The key is checked before the timestamp. One invalid timestamp makes the error of the batch
    INVALID_TIMESTAMP. The records must be well formed.
    """
    earliest = now_ms - configs.message_timestamp_before_max_ms
    latest = now_ms + configs.message_timestamp_after_max_ms
    by_append = bool(header.attributes & TIMESTAMP_TYPE_MASK)
    errors: list[tuple[int, str]] = []
    bad_timestamps = False
    for index, span in enumerate(scan_records(batch_payload(header, batch), header.count)):
        timestamp = (
            header.max_timestamp if by_append else header.base_timestamp + span.timestamp_delta
        )
        if configs.compacted and span.key_length < 0:
            topic, partition = topic_partition
            message = (
                "Compacted topic cannot accept message without key in topic partition "
                f"{topic}-{partition}"
            )
        elif not configs.log_append_time and timestamp != NO_TIMESTAMP:
            if earliest <= timestamp <= latest:
                continue
            bad_timestamps = True
            message = (
                f"Timestamp {timestamp} of message with offset {span.offset_delta} is out of "
                f"range. The timestamp should be within [{earliest}, {latest}]"
            )
        elif by_append:
            bad_timestamps = True
            message = (
                f"Invalid timestamp type in message {_shown(span, timestamp)}. Producer should "
                "not set timestamp type to LogAppendTime."
            )
        else:
            continue
        errors.append((index, message))
    return _refusal(errors, bad_timestamps=bad_timestamps) if errors else None


def _shown(span: RecordSpan, timestamp: int) -> str:
    return (
        f"DefaultRecord(offset={span.offset_delta}, timestamp={timestamp}, "
        f"key={max(span.key_length, 0)} bytes, value={max(span.value_length, 0)} bytes)"
    )


def _refusal(errors: list[tuple[int, str]], *, bad_timestamps: bool) -> BatchRefusal:
    if bad_timestamps:
        return BatchRefusal(
            int(ErrorCode.INVALID_TIMESTAMP),
            "One or more records have been rejected due to invalid timestamp",
            errors,
        )
    shown = ", ".join(
        f"RecordError(batchIndex={index}, message='{message}')"
        for index, message in errors[:ERRORS_SHOWN]
    )
    return BatchRefusal(
        int(ErrorCode.INVALID_RECORD),
        f"One or more records have been rejected due to {len(errors)} record errors in total, and "
        f"only showing the first three errors at most: [{shown}]",
        errors,
    )
