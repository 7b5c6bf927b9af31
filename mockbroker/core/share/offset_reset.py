"""Where a share group begins in a partition that it has not read yet (`share.auto.offset.reset`).

Source: SharePartition.startOffsetDuringInitialization, ShareFetchUtils.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.errors import ERROR_CODES
from mockbroker_protocol.records import RecordsError

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition

EARLIEST = "earliest"
LATEST = "latest"
BY_DURATION = "by_duration:"

# java.time.Duration.parse, without signs inside.
_DURATION = re.compile(
    r"\+?P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_UNIT_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000}


def duration_ms(text: str) -> int:
    """An ISO 8601 duration such as `P1DT2H3M4.5S`, in ms. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration")
    whole = sum(int(match[unit] or 0) * ms for unit, ms in _UNIT_MS.items())
    seconds, _, fraction = (match["seconds"] or "0").replace(",", ".").partition(".")
    return whole + int(seconds) * 1000 + int(fraction.ljust(3, "0")[:3])


def start_offset(partition: Partition, reset: str, leader_epoch: int, now_ms: int) -> int:
    """The offset at which the group begins. Raises ApiError if it is not known now."""
    earliest = earliest_offset(partition, leader_epoch)
    if reset == EARLIEST:
        return earliest
    if reset == LATEST:
        _check_settled(partition)
        return partition.high_watermark
    timestamp = now_ms - duration_ms(reset.removeprefix(BY_DURATION))
    return _offset_for(partition, timestamp)


def earliest_offset(partition: Partition, leader_epoch: int) -> int:
    """The log start offset. Raises ApiError if the leader's epoch is not `leader_epoch`."""
    error = partition.check_leader_epoch(leader_epoch)
    if error:
        raise ApiError(ERROR_CODES[error])
    return partition.log_start_offset


def _offset_for(partition: Partition, timestamp: int) -> int:
    try:
        found = partition.log.find_timestamp(timestamp)
    except RecordsError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    if found is not None and found.offset < partition.high_watermark:
        return found.offset
    _check_settled(partition)
    raise ApiError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"Offset for timestamp {timestamp} not found for topic partition: "
        f"{partition.topic.name}-{partition.index}",
    )


def _check_settled(partition: Partition) -> None:
    """A new leader's high watermark may be below the start of its epoch."""
    if partition.leader_epoch_start_offset > partition.high_watermark:
        raise ApiError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"Failed to fetch high watermark for partition {partition.topic.name}-"
            f"{partition.index}",
        )
