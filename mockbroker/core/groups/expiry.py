"""Which offsets have outlived their retention, and which groups go with them.

From when an offset's age counts depends on its group (KIP-211): in an Empty group from when it
became Empty, in a Stable group of consumers from the commit and only for topics nobody reads, in a
group that only keeps offsets from the commit. In any other group nothing expires. An expiry that
the client asked for itself (OffsetCommit v2-v4) outranks the retention.

Source: OffsetExpirationConditionImpl, ClassicGroup.offsetExpirationCondition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.groups.offsets import NO_TIMESTAMP, OffsetAndMetadata
from mockbroker.core.groups.states import State
from mockbroker.core.groups.subscriptions import is_subscribed, subscribed_topics

if TYPE_CHECKING:
    from mockbroker.core.groups.classic import ClassicGroup
    from mockbroker.core.groups.shard import GroupShard


def expire(shard: GroupShard, retention_ms: int) -> None:
    """Write tombstones for what has expired by now; groups left with nothing are deleted."""
    for group_id in (*shard.groups, *shard.consumers.groups):
        expire_group(shard, group_id, retention_ms)


def expire_group(shard: GroupShard, group_id: str, retention_ms: int) -> None:
    """The same for one group, if it is there."""
    now_ms = shard.now_ms(group_id)
    group = shard.groups.get(group_id)
    if group is not None:
        expired, all_expired = expired_offsets(shard, group, retention_ms, now_ms)
        shard.drop_offsets(group_id, expired)
        if all_expired and group.state is State.EMPTY:
            shard.bury_group(group)
    consumer = shard.consumers.groups.get(group_id)
    if consumer is not None:
        expired, all_expired = _expired(
            shard, group_id, consumer.is_subscribed, _committed_ms, retention_ms, now_ms
        )
        shard.drop_offsets(group_id, expired)
        if all_expired and consumer.is_empty():
            shard.consumers.delete(group_id)


def expired_offsets(
    shard: GroupShard, group: ClassicGroup, retention_ms: int, now_ms: int
) -> tuple[list[tuple[str, int]], bool]:
    """The (topic, partition) keys of a group that have expired, and whether that is all it has."""
    if shard.offsets.of_group(group.group_id) and not _may_expire(group):
        return [], False
    return _expired(
        shard,
        group.group_id,
        partial(is_subscribed, group),
        partial(_age_starts_ms, group),
        retention_ms,
        now_ms,
    )


def _expired(
    shard: GroupShard,
    group_id: str,
    reads: Callable[[str], bool],
    age_starts_ms: Callable[[OffsetAndMetadata], int],
    retention_ms: int,
    now_ms: int,
) -> tuple[list[tuple[str, int]], bool]:
    expired: list[tuple[str, int]] = []
    kept = False
    for topic, partitions in shard.offsets.of_group(group_id).items():
        if reads(topic):
            kept = True
            continue
        for partition, value in partitions.items():
            base_ms = age_starts_ms(value)
            if _is_over(value, base_ms, retention_ms, now_ms) and not shard.offsets.has_pending(
                group_id, topic, partition
            ):
                expired.append((topic, partition))
            else:
                kept = True
    return expired, not kept and not shard.offsets.has_open_transaction(group_id)


def _may_expire(group: ClassicGroup) -> bool:
    if group.roster.protocol_type is None or group.state is State.EMPTY:
        return True
    return group.state is State.STABLE and subscribed_topics(group) is not None


def _age_starts_ms(group: ClassicGroup, value: OffsetAndMetadata) -> int:
    if group.roster.protocol_type is not None and group.state is State.EMPTY:
        return group.state_timestamp_ms
    return value.commit_timestamp_ms


def _committed_ms(value: OffsetAndMetadata) -> int:
    """In a consumer group the age counts from the commit, whatever became of the group."""
    return value.commit_timestamp_ms


def _is_over(value: OffsetAndMetadata, base_ms: int, retention_ms: int, now_ms: int) -> bool:
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - base_ms >= retention_ms
