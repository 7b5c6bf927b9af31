"""Expiration of committed offsets, and of Empty groups without offsets.

A group's type and state decide when the retention of an offset starts (KIP-211,
`Group.retention_start`). Offsets of subscribed topics do not expire. An expire timestamp in the
commit (OffsetCommit v2-v4) takes precedence over the retention.

Source: OffsetExpirationConditionImpl, ClassicGroup.offsetExpirationCondition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.groups.offsets import NO_TIMESTAMP
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard

NONE = ErrorCode.NONE


def expire_group(shard: GroupShard, group_id: str, retention_ms: int) -> int | None:
    """Write tombstones for a group's expired offsets, and delete it if it is Empty without offsets.

    Returns the ms until its next offset expires, or None if none will without another change.
    """
    group = shard.groups.get(group_id)
    retention_start_ms = None if group is None else group.retention_start()
    if group is None or retention_start_ms is None:
        return None
    now_ms = shard.now_ms(group_id)
    expired: list[tuple[str, int]] = []
    kept = False
    next_ms: int | None = None
    for topic, partitions in shard.offsets.of_group(group_id).items():
        if group.is_subscribed(topic):
            kept = True
            continue
        for partition, value in partitions.items():
            end_ms = value.expire_timestamp_ms
            if end_ms == NO_TIMESTAMP:
                end_ms = retention_start_ms(value) + retention_ms
            if end_ms > now_ms:
                kept = True
                next_ms = end_ms if next_ms is None else min(next_ms, end_ms)
            elif shard.offsets.has_pending(group_id, topic, partition):
                kept = True
            else:
                expired.append((topic, partition))
    error = shard.remove_offsets(group_id, expired, "retention")
    deletable = not kept and not shard.offsets.has_open_transaction(group_id) and group.is_empty()
    if error is NONE and deletable:
        error = shard.delete_empty_group(group)
    if error is not NONE:
        return 0  # retried with the next check
    return None if next_ms is None else next_ms - now_ms
