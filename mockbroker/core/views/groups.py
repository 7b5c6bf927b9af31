"""Groups, their members, committed offsets and lags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.group import CONSUMER, SHARE, STREAMS
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.validation import nearest
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.consumer_protocol import decode_assignment
from mockbroker_protocol.exceptions import DecodeError

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.group import Group
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.groups.streams.group import StreamsGroup


class MemberView(msgspec.Struct, frozen=True):
    """One member; `connected`: whether the connection of its last request is open.

    `assigned` has its partitions by topic; it is null for a classic group of another protocol than
    consumers'.
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    connected: bool
    assigned: dict[str, list[int]] | None


class GroupView(msgspec.Struct, frozen=True):
    """One group. `type` is "classic", "consumer" (KIP-848), "share" (KIP-932) or "streams"
    (KIP-1071); `generation` is its generation or epoch.

    A simple group, which has only offsets, has no protocol.
    """

    group: str
    type: str
    state: str
    coordinator: int
    generation: int
    protocol: str | None
    members: list[MemberView]


class LagView(msgspec.Struct, frozen=True):
    """The lag of a group in one partition, in offsets.

    The `kind` is "committed" for a committed offset. Spark commits no offsets: the `kind` for the
    run of a query is "fetched", and `committed` is the largest fetch offset of its consumers.

    `lag` is the distance to the high watermark, `lag_read_committed` to the last stable offset. A
    negative committed offset counts as 0.
    `log_end_offset` is the leader's. `pending`: an open transaction has committed an offset too.
    If the partition does not exist, both lags and the offsets of the log are -1.
    """

    group: str
    topic: str
    partition: int
    committed: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int
    lag: int
    lag_read_committed: int
    pending: bool
    metadata: str
    kind: str = "committed"


class GroupLagView(msgspec.Struct, frozen=True):
    """The lag of a group over all its partitions: the sums of what `LagView` has for each.

    `partitions` counts them; partitions that do not exist have no lag. `pending`: an open
    transaction has committed an offset in one of them.
    """

    group: str
    partitions: int
    lag: int
    lag_read_committed: int
    pending: bool


def group_views(cluster: Cluster) -> list[GroupView]:
    """All groups with a loaded coordinator, by id."""
    found: list[GroupView] = []
    for shard in group_shards(cluster):
        found.extend(_view(cluster, shard, each) for each in shard.by_type())
    return sorted(found, key=lambda view: view.group)


def group_shards(cluster: Cluster) -> Iterator[GroupShard]:
    """The loaded shards of group coordinators."""
    if GROUP_METADATA_TOPIC not in cluster.topics:
        return  # a view must not create a coordinator
    for broker in cluster.brokers.values():
        for shard in broker.groups.shards():
            if not isinstance(shard, ErrorCode):
                yield shard


def _view(cluster: Cluster, shard: GroupShard, group: Group) -> GroupView:
    connected = cluster.member_connections.connected(group.group_id)
    return GroupView(
        group=group.group_id,
        type=group.group_type,
        state=group.state_name,
        coordinator=shard.coordinator.broker_id,
        generation=group.generation_or_epoch,
        protocol=group.protocol,
        members=[
            MemberView(
                member_id,
                member.client_id,
                member.client_host,
                member.instance_id,
                connected(member_id),
                _assigned(cluster, group, member),
            )
            for member_id, member in group.members.items()
        ],
    )


def group_view(cluster: Cluster, group: str) -> GroupView:
    """One group. Raises ApiError when no coordinator has a group of that id."""
    views = group_views(cluster)
    for view in views:
        if view.group == group:
            return view
    hint = nearest(group, [view.group for view in views]) if views else ""
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}{hint}")


def _assigned(cluster: Cluster, group: Group, member: Any) -> dict[str, list[int]] | None:
    """The partitions of a member of any protocol, by topic; in a streams group those that its
    active tasks read.
    """
    if group.group_type in (CONSUMER, SHARE):
        named = ((cluster.topic_name(topic_id), each) for topic_id, each in member.assigned.items())
        return {name: sorted(each) for name, each in named if name is not None}
    if group.group_type == STREAMS:
        return cast("StreamsGroup", group).partitions_of(member)
    if not isinstance(group, ClassicGroup) or not group.is_consumer():
        return None
    if not member.assignment:
        return {}
    try:
        assignment = decode_assignment(member.assignment)
    except DecodeError:
        return None
    return {each.topic: sorted(each.partitions) for each in assignment.assigned_partitions}


def lag_views(cluster: Cluster, group: str | None = None) -> list[LagView]:
    """The lags of all committed offsets and of Spark's fetch positions, by group and partition."""
    found = [*_committed_lags(cluster, group), *fetch_lag_views(cluster, group)]
    return sorted(found, key=lambda view: (view.group, view.topic, view.partition))


def group_lag_views(cluster: Cluster) -> list[GroupLagView]:
    """The lag of each group that has offsets, by group."""
    by_group: dict[str, list[LagView]] = {}
    for view in lag_views(cluster):
        by_group.setdefault(view.group, []).append(view)
    return [
        GroupLagView(
            group=group,
            partitions=len(views),
            lag=sum(max(each.lag, 0) for each in views),
            lag_read_committed=sum(max(each.lag_read_committed, 0) for each in views),
            pending=any(each.pending for each in views),
        )
        for group, views in by_group.items()
    ]


def _committed_lags(cluster: Cluster, group: str | None) -> Iterator[LagView]:
    for shard in group_shards(cluster):
        for group_id, topics in shard.offsets.committed.items():
            if group is not None and group_id != group:
                continue
            for topic, partitions in topics.items():
                for index, value in partitions.items():
                    pending = shard.offsets.has_pending(group_id, topic, index)
                    key = (group_id, topic, index)
                    yield _lag(cluster, key, value.offset, value.metadata, pending)


def fetch_lag_views(cluster: Cluster, group: str | None = None) -> list[LagView]:
    """The lags of the runs of Spark's queries, by group and partition.

    The position of a run in a partition is the largest of its consumers.
    """
    positions: dict[tuple[str, str, int], int] = {}
    for broker in cluster.brokers.values():
        for (group_id, topic_key, index), offset in broker.fetch_positions:
            topic = cluster.topic_name(topic_key) if isinstance(topic_key, bytes) else topic_key
            if topic is None or group not in (None, group_id):
                continue
            key = (group_id, topic, index)
            positions[key] = max(offset, positions.get(key, 0))
    return [
        _lag(cluster, key, offset, "", pending=False, kind="fetched")
        for key, offset in sorted(positions.items())
    ]


def lag_to(end: int, committed: int) -> int:
    """The number of offsets from a committed offset to an end offset; 0 if the end is not above it.

    A group can commit any int64, as in Kafka. A negative one counts as 0, so that every lag is an
    int64 too.
    """
    return max(end - max(committed, 0), 0)


def _lag(
    cluster: Cluster,
    key: tuple[str, str, int],
    committed: int,
    metadata: str,
    pending: bool,
    kind: str = "committed",
) -> LagView:
    group, topic, index = key
    partition = cluster.partition(topic, index)
    if partition is None:
        return LagView(group, topic, index, committed, -1, -1, -1, -1, -1, pending, metadata, kind)
    high, stable = partition.high_watermark, partition.last_stable_offset
    return LagView(
        group=group,
        topic=topic,
        partition=index,
        committed=committed,
        last_stable_offset=stable,
        high_watermark=high,
        log_end_offset=partition.log_end_offset,
        lag=lag_to(high, committed),
        lag_read_committed=lag_to(stable, committed),
        pending=pending,
        metadata=metadata,
        kind=kind,
    )
