"""Offsets that a group commits in a transaction: they are pending until the marker.

They are a transactional batch in `__consumer_offsets` with the producer's id and epoch, so the
transaction is verified as in any other partition.

Source: GroupCoordinatorShard.commitTransactionalOffset, CoordinatorRuntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.emitters import emit_committed
from mockbroker.core.log.verification import VerificationGuard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record, build_batch

if TYPE_CHECKING:
    from mockbroker.core.groups.offsets import OffsetAndMetadata
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.runtime import Runtime

NONE = int(ErrorCode.NONE)


def commit_pending(
    runtime: Runtime,
    shard: GroupShard,
    group_id: str,
    commits: Sequence[tuple[str, int, OffsetAndMetadata]],
    *,
    producer_id: int,
    epoch: int,
    guard: VerificationGuard | None,
    request_seq: int = 0,
) -> int:
    """Write checked commits, (topic, partition, offset). Returns an error code.

    Without a guard the transaction is not verified. `request_seq` is the number of the request in
    the journal.
    """
    if not commits:
        return NONE
    producers = shard.partition.log.producers
    error = NONE if guard is None else producers.check_guard(producer_id, epoch, guard)
    entry = producers.entries.get(producer_id)
    if error == NONE and entry is not None and epoch < entry.epoch:
        error = int(ErrorCode.INVALID_PRODUCER_EPOCH)
    if error != NONE:
        return error
    now_ms = runtime.now_ms()
    batch = build_batch(
        [
            Record(timestamp=now_ms, key=key, value=value)
            for key, value in (
                group_records.offset_commit(group_id, topic, index, offset)
                for topic, index, offset in commits
            )
        ],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    failed, record_offset = shard.write(batch, now_ms)
    if failed:
        return failed
    for topic, index, offset in commits:
        offset.record_offset = record_offset
        record_offset += 1
        shard.offsets.commit_pending(producer_id, group_id, topic, index, offset)
    node_id = shard.coordinator.broker_id
    emit_committed(runtime, now_ms, node_id, group_id, commits, request_seq, transactional=True)
    return NONE
