"""Rebuilding a shard from the log: the records of `__consumer_offsets` in their order.

All that the new leader has counts, also above its high watermark: that may be late, and what was
acknowledged by the leader before is among it. A later record of the same key replaces an earlier
one, a tombstone removes it, a transaction's commits wait for its marker. A group's members come
back as of its last completed rebalance; whatever round was under way starts over.

Source: CoordinatorLoaderImpl, and the replay methods of the two managers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.consumer.records import ConsumerRecord
from mockbroker.core.groups.consumer.records import parse as parse_consumer
from mockbroker.core.groups.records import GroupRecord, OffsetRecord, parse
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    Record,
    iter_records,
    parse_control_type,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard


def load(shard: GroupShard, now_ms: int) -> None:
    """Read the shard's partition to its end. The shard must be fresh."""
    shard.loading = True
    for batch in shard.partition.log.batches():
        header = BatchHeader(batch)
        for record in iter_records(header, batch):
            if header.is_control:
                _replay_control(shard, header, record)
            else:
                producer_id = header.producer_id if header.is_transactional else -1
                replay(shard, record, producer_id, now_ms)


def _replay_control(shard: GroupShard, header: BatchHeader, record: Record) -> None:
    kind = parse_control_type(record.key)
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        committed = kind is ControlType.COMMIT
        shard.offsets.end_transaction(header.producer_id, committed=committed)


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
        if parsed.image is None:
            shard.forget_group(parsed.group_id)
        else:
            shard.groups[parsed.group_id] = ClassicGroup.restore(
                parsed.group_id, shard.settings, parsed.image, now_ms
            )


def _replay_offset(shard: GroupShard, record: OffsetRecord, producer_id: int, now_ms: int) -> None:
    key = (record.group_id, record.topic, record.partition)
    if record.value is None:
        shard.offsets.remove(*key)
        return
    if record.group_id not in shard.groups and record.group_id not in shard.consumers.groups:
        shard.simple_group(record.group_id, now_ms)
    if producer_id < 0:
        shard.offsets.commit(*key, record.value)
    else:
        shard.offsets.commit_pending(producer_id, *key, record.value)
