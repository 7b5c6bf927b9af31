"""Rebuilding a shard from the log: the records of `__consumer_offsets` in their order.

All that the new leader has counts, also above its high watermark: that may be late, and what was
acknowledged by the leader before is among it. A later record of the same key replaces an earlier
one, a tombstone removes it, a transaction's commits wait for its marker. A group's members come
back as of its last completed rebalance; whatever round was under way starts over.

Source: CoordinatorLoaderImpl, and the replay methods of the two managers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.coordinator.shard import stored_records
from mockbroker.core.groups.consumer.records import ConsumerRecord
from mockbroker.core.groups.consumer.records import parse as parse_consumer
from mockbroker.core.groups.offsets import OffsetStore
from mockbroker.core.groups.records import GroupRecord, OffsetRecord, parse
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.records import BatchHeader, ControlType, Record, parse_control_type

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.replication.partition import Partition


def load(shard: GroupShard, now_ms: int) -> None:
    """Read the shard's partition to its end. The shard must be fresh."""
    for header, record in stored_records(shard.partition.log):
        if header.is_control:
            _replay_control(shard.offsets, header, record)
        else:
            replay(shard, record, _producer_id(header), now_ms)


def replicated_offsets(partition: Partition) -> OffsetStore:
    """The offsets as the records below the high watermark have them: what all in the ISR know."""
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
    """Of the transaction that a batch belongs to, -1 for none."""
    return header.producer_id if header.is_transactional else -1


def _replay_control(offsets: OffsetStore, header: BatchHeader, record: Record) -> None:
    kind = parse_control_type(record.key)
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        offsets.end_transaction(header.producer_id, committed=kind is ControlType.COMMIT)


def replay(shard: GroupShard, record: Record, producer_id: int, now_ms: int) -> None:
    """Take in one record. Kinds that this coordinator does not know are passed over.

    So is what cannot be read; only an administrator's client can have produced it. It is counted in
    `unreadable`. (Kafka gives the whole partition up.)
    """
    parsed: GroupRecord | OffsetRecord | ConsumerRecord | None
    try:
        parsed = parse(record) or parse_consumer(record)
    except (DecodeError, UnknownVersionError):
        shard.unreadable += 1
        return
    if isinstance(parsed, ConsumerRecord):
        shard.consumers.replay(parsed.group_id, parsed.change)
    elif isinstance(parsed, OffsetRecord):
        _replay_offset(shard, parsed, producer_id, now_ms)
    elif isinstance(parsed, GroupRecord):
        shard.classic.replay(parsed, now_ms)


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
