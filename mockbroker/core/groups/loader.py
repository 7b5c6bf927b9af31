"""The loader of a shard: it replays the records of `__consumer_offsets` in their order.

The whole log of the new leader is replayed, also above its high watermark: the high watermark may
lag behind records that the former leader has acknowledged. A later record of a key replaces an
earlier one, a tombstone removes it, and the commits of a transaction wait for its marker. A group
has the members of its last completed rebalance; a rebalance that was in progress starts over.

Source: CoordinatorLoaderImpl, and the replay methods of the two managers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.coordinator.shard import stored_records
from mockbroker.core.groups.group import CLASSIC, CONSUMER, SHARE, STREAMS
from mockbroker.core.groups.offsets import OffsetStore
from mockbroker.core.groups.records import OffsetRecord, parse
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.records import BatchHeader, ControlType, Record, parse_control_type

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.replication.partition import Partition

OFFSET_COMMIT = 1

# The group type by the type of a record, the int16 in front of its key (CoordinatorRecordType).
GROUP_TYPES: dict[int, str] = {
    2: CLASSIC,
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), CONSUMER),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), STREAMS),
    **dict.fromkeys((10, 11, 12, 13, 14, 15), SHARE),
}


def replay_stored(shard: GroupShard, header: BatchHeader, record: Record, now_ms: int) -> None:
    """Apply one record of the log, which may be the marker of a transaction."""
    if header.is_control:
        _replay_control(shard.offsets, header, record)
    else:
        replay(shard, record, _producer_id(header), now_ms)


def replicated_offsets(partition: Partition) -> OffsetStore:
    """The offsets in the records below the high watermark, which each replica in the ISR has."""
    offsets = OffsetStore()
    for header, record in stored_records(partition.log):
        if header.base_offset >= partition.high_watermark:
            break
        if header.is_control:
            _replay_control(offsets, header, record)
            continue
        try:
            parsed = parse(record)
        except (DecodeError, UnknownVersionError):
            continue
        if isinstance(parsed, OffsetRecord):
            _store_offset(offsets, parsed, _producer_id(header))
    return offsets


def _producer_id(header: BatchHeader) -> int:
    """The producer id of a batch's transaction, or -1 without one."""
    return header.producer_id if header.is_transactional else -1


def _replay_control(offsets: OffsetStore, header: BatchHeader, record: Record) -> None:
    kind = parse_control_type(record.key)
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        offsets.end_transaction(header.producer_id, committed=kind is ControlType.COMMIT)


def replay(shard: GroupShard, record: Record, producer_id: int, now_ms: int) -> None:
    """Apply one record. Records of unknown types are skipped.

    Records that cannot be decoded are counted in `unreadable` and skipped; only an administrator's
    client can have produced them. (Kafka fails the load of the whole partition.)
    """
    if record.key is None:
        return
    record_type = int.from_bytes(record.key[:2], "big", signed=True)
    try:
        if len(record.key) < 2:
            raise DecodeError("type", 0, "needs 2 bytes")
        if record_type == OFFSET_COMMIT:
            offset = parse(record)
            assert isinstance(offset, OffsetRecord)
            _replay_offset(shard, offset, producer_id, now_ms)
        elif record_type in GROUP_TYPES:
            shard.runner_of(GROUP_TYPES[record_type]).replay_record(record, now_ms)
    except (DecodeError, UnknownVersionError):
        shard.unreadable += 1


def _replay_offset(shard: GroupShard, record: OffsetRecord, producer_id: int, now_ms: int) -> None:
    group_id = record.group_id
    if record.value is not None and group_id not in shard.groups:
        shard.classic.create_simple_group(group_id, now_ms)
    _store_offset(shard.offsets, record, producer_id)


def _store_offset(offsets: OffsetStore, record: OffsetRecord, producer_id: int) -> None:
    key = (record.group_id, record.topic, record.partition)
    if record.value is None:
        offsets.remove(*key)
    elif producer_id < 0:
        offsets.commit(*key, record.value)
    else:
        offsets.commit_pending(producer_id, *key, record.value)
