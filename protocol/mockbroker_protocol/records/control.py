"""Control batches: the markers that end a transaction in each partition it wrote to.

A marker is a batch of one record that consumers never see and that takes one offset. Key: version
i16, type i16. Value of ABORT and COMMIT: version i16, coordinator epoch i32 (Kafka's
ControlRecordType and EndTransactionMarker). Readers accept later versions, which only append
fields.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import msgspec

from mockbroker_protocol.records.batch import BatchHeader, Buffer
from mockbroker_protocol.records.build import NO_LEADER_EPOCH, build_batch
from mockbroker_protocol.records.errors import InvalidRecordError
from mockbroker_protocol.records.record import Record, iter_records

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class ControlType(IntEnum):
    """The type of a control record. Those after COMMIT occur only in KRaft's metadata log."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(msgspec.Struct, frozen=True):
    """An ABORT or COMMIT marker as found in a log."""

    control_type: ControlType
    coordinator_epoch: int


def build_marker(
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The batch of one ABORT or COMMIT marker; `timestamp` in ms."""
    record = Record(
        base_offset,
        timestamp,
        _KEY.pack(0, control_type),
        _VALUE.pack(0, coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def parse_control_type(key: bytes | None) -> ControlType:
    """The type in a control record's key; UNKNOWN for types to come.

    Raises `InvalidRecordError` for a key that is too short or of a negative version.
    """
    if key is None or len(key) < _KEY.size:
        raise InvalidRecordError(0, f"a control record's key has at least {_KEY.size} bytes")
    version, control_type = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecordError(0, f"control record key version {version}")
    try:
        return ControlType(control_type)
    except ValueError:
        return ControlType.UNKNOWN


def parse_marker(record: Record) -> EndTransactionMarker:
    """The ABORT or COMMIT marker in a control record.

    Raises `InvalidRecordError` for another type or for a value that is too short.
    """
    control_type = parse_control_type(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise InvalidRecordError(2, f"control type {control_type.name} ends no transaction")
    value = record.value
    if value is None or len(value) < _VALUE.size:
        raise InvalidRecordError(0, f"a marker's value has at least {_VALUE.size} bytes")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise InvalidRecordError(0, f"marker value version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)


# Of a control record. Kafka's have some twenty bytes, and are never compressed.
_BYTES_MAX = 64 * 1024


def read_control(header: BatchHeader, batch: Buffer) -> Record:
    """The one record of a control batch. Raises `InvalidRecordError` if it has another number, and
    `CompressionError` if it is large when decompressed.
    """
    if header.count != 1:
        raise InvalidRecordError(57, f"a control batch of {header.count} records")
    (record,) = iter_records(header, batch, decompressed_bytes_max=_BYTES_MAX)
    return record
