"""Groups, their members, what they committed, and how far behind they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.group import Group
    from mockbroker.core.groups.shard import GroupShard


class MemberView(msgspec.Struct, frozen=True):
    """One member; `connected`: whether the connection of its last request is open."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    connected: bool


class GroupView(msgspec.Struct, frozen=True):
    """One group. `type` is "classic" or "consumer" (KIP-848); `generation` its generation or epoch.

    A group of which only offsets are left has no protocol.
    """

    group: str
    type: str
    state: str
    coordinator: int
    generation: int
    protocol: str | None
    members: list[MemberView]


class LagView(msgspec.Struct, frozen=True):
    """How far a group is behind in one partition, in offsets.

    `kind` is "committed" for what a group has committed. Spark commits nothing: for the run of a
    query there is a "fetched" one instead, where `committed` is the offset that its consumers
    fetched from last. They read ahead, so its lag is what has not even been fetched.

    `lag` counts to the high watermark, as far as read_uncommitted consumers get,
    `lag_read_committed` to the last stable offset. `log_end_offset` is the leader's. `pending`: a
    transaction that has not ended has committed an offset too. Without a partition any more both
    lags and the offsets of the log are -1.
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


def group_views(cluster: Cluster) -> list[GroupView]:
    """Every group that a coordinator answers for now, by id."""
    found: list[GroupView] = []
    for shard in _shards(cluster):
        found.extend(_view(cluster, shard, each) for each in shard.by_type())
    return sorted(found, key=lambda view: view.group)


def _shards(cluster: Cluster) -> Iterator[GroupShard]:
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
            )
            for member_id, member in group.members.items()
        ],
    )


def lag_views(cluster: Cluster, group: str | None = None) -> list[LagView]:
    """The lag of every committed offset, and of what Spark has fetched, by group and partition."""
    found = [*_committed_lags(cluster, group), *fetch_lag_views(cluster, group)]
    return sorted(found, key=lambda view: (view.group, view.topic, view.partition))


def _committed_lags(cluster: Cluster, group: str | None) -> Iterator[LagView]:
    for shard in _shards(cluster):
        for group_id, topics in shard.offsets.committed.items():
            if group is not None and group_id != group:
                continue
            for topic, partitions in topics.items():
                for index, value in partitions.items():
                    pending = shard.offsets.has_pending(group_id, topic, index)
                    key = (group_id, topic, index)
                    yield _lag(cluster, key, value.offset, value.metadata, pending)


def fetch_lag_views(cluster: Cluster, group: str | None = None) -> list[LagView]:
    """How far the runs of Spark's queries have fetched, by group and partition.

    Where several consumers of a run have read a partition, the one that came farthest counts.
    """
    farthest: dict[tuple[str, str, int], int] = {}
    for broker in cluster.brokers.values():
        for (group_id, topic_key, index), offset in broker.fetch_positions:
            topic = cluster.topic_name(topic_key) if isinstance(topic_key, bytes) else topic_key
            if topic is None or group not in (None, group_id):
                continue
            key = (group_id, topic, index)
            farthest[key] = max(offset, farthest.get(key, 0))
    return [
        _lag(cluster, key, offset, "", pending=False, kind="fetched")
        for key, offset in sorted(farthest.items())
    ]


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
        lag=max(high - committed, 0),
        lag_read_committed=max(stable - committed, 0),
        pending=pending,
        metadata=metadata,
        kind=kind,
    )
