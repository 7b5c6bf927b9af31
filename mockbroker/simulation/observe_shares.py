"""The internals of share partitions and share coordinators, for the laws of share groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.cluster import Cluster
from mockbroker.core.groups.share.group import ShareGroup
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.records import SharePartitionKey
from mockbroker.core.share.sessions import ShareSession
from mockbroker.core.share.shard import ShareShard
from mockbroker.core.share.state_batches import StateBatch
from mockbroker.core.share.states import RecordState
from mockbroker.simulation import observe


def share_partition(
    cluster: Cluster, node_id: int, group_id: str, topic_id: bytes, index: int
) -> SharePartition | None:
    """The share partition of a broker, if the broker leads its partition in the newest image."""
    broker = cluster.processes.get(node_id)
    if broker is None or not broker.has_share_partitions or not broker.has_newest_image:
        return None
    found = broker.share_partitions.get(group_id, topic_id, index)
    if found is None or not found.is_active:
        return None
    partition = cluster.image.partition_by_id(topic_id, index)
    if partition is None or partition is not found.partition or partition.leader_id != node_id:
        return None
    return found if found.leader_epoch == partition.leader_epoch else None


def keeps_former_epoch(
    cluster: Cluster, node_id: int, group_id: str, topic_id: bytes, index: int
) -> bool:
    """Whether a share partition has a leader epoch below that of its partition, which its broker
    leads in a new epoch and has led without a break.
    """
    broker = cluster.processes.get(node_id)
    if broker is None or not broker.has_share_partitions:
        return False
    found = broker.share_partitions.get(group_id, topic_id, index)
    return (
        found is not None
        and found.is_active
        and found.partition.leader_id == node_id
        and found.leader_epoch < found.partition.leader_epoch
    )


def session_of(cluster: Cluster, node_id: int, group_id: str, member: str) -> ShareSession | None:
    """The share session of a member with a broker."""
    broker = cluster.processes.get(node_id)
    if broker is None or not broker.has_share_partitions:
        return None
    return broker.share_partitions.sessions.get((group_id, member))


def lock_time_ms(cluster: Cluster, node_id: int) -> int:
    """The time of acquisition locks."""
    broker = cluster.processes.get(node_id)
    if broker is None or not broker.has_share_partitions:
        return 0
    return broker.share_partitions.now_ms()


class RecordsInFlight(NamedTuple):
    """Records in flight with one state."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    member_id: str
    lock_deadline_ms: int
    has_ongoing_transition: bool


def records_in_flight(share: SharePartition) -> Iterator[RecordsInFlight]:
    """All records in flight, in order."""
    for batch in share.batches:
        if batch.whole is not None:
            states = [(batch.first_offset, batch.last_offset, batch.whole)]
        else:
            found = batch.states(batch.first_offset, batch.last_offset)
            states = [(offset, offset, state) for offset, state in found]
        for first, last, state in states:
            yield RecordsInFlight(
                first,
                last,
                state.state,
                state.delivery_count,
                state.member_id,
                state.lock_deadline_ms,
                state.has_ongoing_transition,
            )


def readable_end(share: SharePartition) -> int:
    """The offset before which a member may acquire records."""
    partition = share.partition
    if share.configs.reads_committed:
        return partition.last_stable_offset
    return partition.high_watermark


def has_gap_below_log(share: SharePartition) -> bool:
    """Whether the next fetch is below the log start offset, in the gap that was read."""
    gap = share.read_gap
    return (
        gap is not None
        and share.gap_is_open
        and gap.start_offset < share.partition.log_start_offset
    )


def all_share_partitions(cluster: Cluster) -> Iterator[tuple[Broker, SharePartition]]:
    """Every share partition, with its broker."""
    for broker in cluster.processes.values():
        if broker.has_share_partitions:
            for share in broker.share_partitions.all():
                yield broker, share


class StoredState(NamedTuple):
    """The state of a share partition at its share coordinator."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...]


def first_undecided(state: StoredState, log_start_offset: int) -> int | None:
    """The first offset that is neither Acknowledged nor Archived; None if a gap begins below the
    log start offset, which no fetch passes.
    """
    following = state.start_offset
    for batch in sorted(state.batches):
        if batch.last_offset < following:
            continue
        if batch.first_offset > following:
            if following < log_start_offset:
                return None
            break
        if batch.delivery_state == RecordState.AVAILABLE and batch.last_offset >= log_start_offset:
            break
        following = batch.last_offset + 1
    return max(following, log_start_offset)


def stored_states(
    cluster: Cluster, partition: Partition
) -> dict[SharePartitionKey, StoredState] | None:
    """The replicated states in a partition of `__share_group_state`; None if they are not known."""
    broker = cluster.processes.get(partition.leader_id)
    shard = None if broker is None else observe.shard_of(broker, partition)
    if broker is None or not isinstance(shard, ShareShard) or not observe.fits(broker, shard):
        return None
    if not shard.is_replicated:
        return None
    return {
        key: StoredState(
            entry.state_epoch, entry.leader_epoch, entry.state.start_offset, entry.state.batches
        )
        for key, entry in shard.entries.items()
    }


def repeated_writes(cluster: Cluster) -> Iterator[tuple[SharePartitionKey, int]]:
    """The share partition and the start offset of each write that a persister repeats."""
    for broker in cluster.processes.values():
        if broker.has_share_partitions:
            yield from broker.share_persister.repeated_writes()


def overtaken_writes(
    cluster: Cluster, states: Mapping[SharePartitionKey, StoredState]
) -> Iterator[tuple[SharePartitionKey, int]]:
    """The share partition and the start offset of each write without a result that is below the
    stored start offset: a later write was stored before it.
    """
    for broker in cluster.processes.values():
        if broker.has_share_partitions:
            for key, row in broker.share_persister.writes():
                state = states.get(key)
                if state is not None and row.start_offset < state.start_offset:
                    yield key, row.start_offset


def count_on_its_way(cluster: Cluster, node_id: int, key: SharePartitionKey, offset: int) -> int:
    """The highest delivery count of a record in the writes of a broker without a result yet; 0 if
    there is none.
    """
    broker = cluster.processes.get(node_id)
    if broker is None or not broker.has_share_partitions:
        return 0
    counts = (
        batch.delivery_count
        for written, row in broker.share_persister.writes()
        if written == key
        for batch in row.state_batches
        if batch.first_offset <= offset <= batch.last_offset
    )
    return max(counts, default=0)


def initializations(cluster: Cluster) -> Iterator[tuple[SharePartitionKey, int]]:
    """The share partition and the state epoch of each initialization without a result."""
    for broker in cluster.processes.values():
        if broker.has_groups:
            yield from broker.share_persister.initializations()


def initialized_partitions(cluster: Cluster, group_id: str) -> Iterator[SharePartitionKey]:
    """The share partitions that the coordinator of a share group takes for initialized."""
    for broker in cluster.processes.values():
        for shard in broker.groups.loaded() if broker.has_groups else ():
            group = shard.groups.get(group_id)
            if isinstance(group, ShareGroup):
                for topic_id, partitions in group.partitions.initialized_partitions().items():
                    for index in partitions:
                        yield SharePartitionKey(group_id, topic_id, index)


def has_deposed_coordinator(cluster: Cluster, partition: Partition) -> bool:
    """Whether a broker still leads a partition of `__share_group_state` by its old image."""
    return any(
        view.leads and view.node_id != partition.leader_id
        for view in observe.replicas(cluster, partition)
    )


# -- streams groups --------------------------------------------------------------------------------


def streams_group(cluster: Cluster, node_id: int, group_id: str) -> StreamsGroup | None:
    """A streams group at its coordinator, or None."""
    broker = cluster.processes.get(node_id)
    for shard in broker.groups.loaded() if broker is not None and broker.has_groups else ():
        found = shard.groups.get(group_id)
        if isinstance(found, StreamsGroup):
            return found
    return None
