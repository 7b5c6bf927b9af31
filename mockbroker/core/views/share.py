"""Share partitions, in the states of their leaders and of their share coordinators (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.share.partition import SharePartition
    from mockbroker.core.share.persisted import SharePartitionKey
    from mockbroker.core.share.records import ShareState

UNLOADED = "Unloaded"
NO_BROKER = -1
NO_OFFSET = -1


class RecordCountsView(msgspec.Struct, frozen=True):
    """Records in flight by their state."""

    available: int = 0
    acquired: int = 0
    acknowledged: int = 0
    archived: int = 0


class InFlightView(msgspec.Struct, frozen=True):
    """The records of a range of offsets, both ends included, in one state.

    `state` is Available, Acquired, Acknowledged or Archived. `member_id` is the member that has
    acquired them, `locked_until_ms` (ms since the epoch) the end of its lock. `is_changing`: an
    acknowledgement is being written.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None
    locked_until_ms: int | None
    is_changing: bool


class SharePartitionView(msgspec.Struct, frozen=True):
    """One partition, as a share group reads it.

    `leader` is the broker that serves it, and `state` the state there: Active, or Unloaded if no
    member has fetched since the leader moved or the last member left. Offsets and records are then
    those that the share coordinator has. `end_offset` is the last offset that was ever acquired;
    an empty share partition has the same start and end.
    """

    group: str
    topic: str
    partition: int
    state: str
    leader: int
    coordinator: int
    state_epoch: int
    start_offset: int
    end_offset: int
    delivery_count_limit: int
    counts: RecordCountsView
    in_flight: list[InFlightView]


def share_partition_views(cluster: Cluster, group: str | None = None) -> list[SharePartitionView]:
    """The share partitions of all groups, or of one, by group, topic and partition."""
    if SHARE_GROUP_STATE_TOPIC not in cluster.topics:
        return []  # a view must not create a coordinator
    found: dict[SharePartitionKey, SharePartitionView] = {}
    for broker in cluster.processes.values():
        for share in broker.share_partitions.all() if broker.has_share_partitions else ():
            if group in (None, share.group_id):
                found[share.key] = _loaded(cluster, share, broker.node_id)
    for key, state in _persisted(cluster):
        if key not in found and group in (None, key[0]):
            view = _unloaded(cluster, key, state)
            if view is not None:
                found[key] = view
    return sorted(found.values(), key=lambda view: (view.group, view.topic, view.partition))


def _persisted(cluster: Cluster) -> list[tuple[SharePartitionKey, ShareState]]:
    return [
        (key, entry.state)
        for broker in cluster.processes.values()
        if broker.has_share_coordinator
        for shard in broker.share_coordinator.loaded()
        for key, entry in shard.entries.items()
    ]


def _coordinator(cluster: Cluster, key: SharePartitionKey) -> int:
    from mockbroker.core.share.coordinator import coordinator_key

    topic = SHARE_GROUP_STATE_TOPIC
    index = cluster.find_coordinator_partition(coordinator_key(*key), topic)
    partition = cluster.partition(topic, index)
    return NO_BROKER if partition is None else partition.leader_id


def _loaded(cluster: Cluster, share: SharePartition, leader: int) -> SharePartitionView:
    in_flight = [
        InFlightView(
            max(first, share.start_offset) if last >= share.start_offset else first,
            last,
            state.state.name.capitalize(),
            state.delivery_count,
            state.member_id or None,
            state.lock_deadline_ms or None,
            state.has_ongoing_transition,
        )
        for batch in share.batches
        for first, last, state in batch.parts()
        if last >= share.start_offset or state.member_id  # a member may have a lost record still
    ]
    return SharePartitionView(
        group=share.group_id,
        topic=share.partition.topic.name,
        partition=share.partition.index,
        state=share.state.value,
        leader=leader,
        coordinator=_coordinator(cluster, share.key),
        state_epoch=share.state_epoch,
        start_offset=share.start_offset,
        end_offset=share.end_offset,
        delivery_count_limit=share.configs.delivery_count_limit,
        counts=_counts(in_flight),
        in_flight=_merged(in_flight),
    )


def _unloaded(
    cluster: Cluster, key: SharePartitionKey, state: ShareState
) -> SharePartitionView | None:
    from mockbroker.core.share.configs import ShareGroupConfigs
    from mockbroker.core.share.states import RecordState

    group, topic_id, index = key
    topic = cluster.topic_name(topic_id)
    partition = None if topic is None else cluster.partition(topic, index)
    if topic is None or partition is None:
        return None
    in_flight = [
        InFlightView(
            each.first_offset,
            each.last_offset,
            RecordState(each.delivery_state).name.capitalize(),
            each.delivery_count,
            None,
            None,
            is_changing=False,
        )
        for each in state.batches
    ]
    return SharePartitionView(
        group=group,
        topic=topic,
        partition=index,
        state=UNLOADED,
        leader=partition.leader_id,
        coordinator=_coordinator(cluster, key),
        state_epoch=max(state.state_epoch, 0),
        start_offset=state.start_offset,
        end_offset=max((each.last_offset for each in in_flight), default=state.start_offset),
        delivery_count_limit=ShareGroupConfigs(cluster.configs, group).delivery_count_limit,
        counts=_counts(in_flight),
        in_flight=in_flight,
    )


def _counts(in_flight: list[InFlightView]) -> RecordCountsView:
    counts: dict[str, int] = {}
    for each in in_flight:
        name = each.state.lower()
        counts[name] = counts.get(name, 0) + each.last_offset - each.first_offset + 1
    return RecordCountsView(**counts)


def _merged(in_flight: list[InFlightView]) -> list[InFlightView]:
    """The same ranges, with neighbours in the same state joined."""
    merged: list[InFlightView] = []
    for each in in_flight:
        before = merged[-1] if merged else None
        if before is not None and before.last_offset + 1 == each.first_offset:
            joined = msgspec.structs.replace(each, first_offset=before.first_offset)
            if msgspec.structs.replace(before, last_offset=each.last_offset) == joined:
                merged[-1] = joined
                continue
        merged.append(each)
    return merged
