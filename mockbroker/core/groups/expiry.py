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
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.groups.offsets import NO_TIMESTAMP, OffsetAndMetadata
from mockbroker.core.groups.states import State
from mockbroker.core.groups.subscriptions import is_subscribed, subscribed_topics
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.classic import ClassicGroup
    from mockbroker.core.groups.shard import GroupShard

NONE = ErrorCode.NONE


class Expired(NamedTuple):
    """What has expired of a group's offsets, by (topic, partition), and whether that is all it has.

    `left_ms` is how long it takes until something else expires, if nothing happens but time
    passes; None where something else has to happen first.
    """

    keys: list[tuple[str, int]]
    all: bool
    left_ms: int | None


def expire(shard: GroupShard, retention_ms: int) -> int | None:
    """Write tombstones for what has expired by now; groups left with nothing are deleted.

    Returns after how many ms there is something to do again, as `Expired.left_ms`.
    """
    left = [
        expire_group(shard, group_id, retention_ms)
        for group_id in (*shard.groups, *shard.consumers.groups)
    ]
    return min((left_ms for left_ms in left if left_ms is not None), default=None)


def expire_group(shard: GroupShard, group_id: str, retention_ms: int) -> int | None:
    """The same for one group, if it is there."""
    now_ms = shard.now_ms(group_id)
    group = shard.groups.get(group_id)
    consumer = shard.consumers.groups.get(group_id)
    if group is not None:
        expired = _of_classic(shard, group, retention_ms, now_ms)
    elif consumer is not None:
        expired = _expired(
            shard, group_id, consumer.is_subscribed, _committed_ms, retention_ms, now_ms
        )
    else:
        return None
    error = shard.drop_offsets(group_id, expired.keys)
    if error is NONE and expired.all:
        if group is not None and group.state is State.EMPTY:
            error = shard.bury_group(group)
        elif consumer is not None and consumer.is_empty():
            error = shard.consumers.delete(group_id)
    return expired.left_ms if error is NONE else 0  # what could not be written is tried again


def _of_classic(shard: GroupShard, group: ClassicGroup, retention_ms: int, now_ms: int) -> Expired:
    if shard.offsets.of_group(group.group_id) and not _may_expire(group):
        return Expired([], all=False, left_ms=None)
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
) -> Expired:
    expired: list[tuple[str, int]] = []
    kept = False
    next_ms: int | None = None
    for topic, partitions in shard.offsets.of_group(group_id).items():
        if reads(topic):
            kept = True
            continue
        for partition, value in partitions.items():
            end_ms = value.expire_timestamp_ms
            if end_ms == NO_TIMESTAMP:
                end_ms = age_starts_ms(value) + retention_ms
            if end_ms > now_ms:
                kept = True
                next_ms = end_ms if next_ms is None else min(next_ms, end_ms)
            elif shard.offsets.has_pending(group_id, topic, partition):
                kept = True
            else:
                expired.append((topic, partition))
    everything = not kept and not shard.offsets.has_open_transaction(group_id)
    return Expired(expired, everything, None if next_ms is None else next_ms - now_ms)


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
