"""The internals of a cluster, for the laws; no other module of the simulation reads them.

`cluster.topics` is the controller's state. A broker's image may be older.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.cluster import Cluster
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.groups.states import ClassicGroupState
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.shard import ShareShard
from mockbroker.core.txn.records import key_of
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.views.groups import group_views
from mockbroker.handlers.share_fetch import DelayedShareFetch
from mockbroker.simulation.logs import LogView, ObservedBatch, batches_of, transactional_batches_of
from mockbroker_protocol import ApiKey

GROUPS = GROUP_METADATA_TOPIC  # where group coordinators keep what they know
TRANSACTIONS = TRANSACTION_STATE_TOPIC  # where transaction coordinators keep what they know
SHARES = SHARE_GROUP_STATE_TOPIC  # where share coordinators keep what they know
COORDINATOR_LOGS = frozenset((GROUPS, TRANSACTIONS, SHARES))


class ObservedReplica(msgspec.Struct, frozen=True, gc=False):
    """One broker's replica of a partition. `leads`: the broker is the leader by its own image.

    `known` is the partition in that image.
    """

    node_id: int
    log: ReplicaLog
    high_watermark: int
    leads: bool
    leader_epoch: int
    known: Partition

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset on this broker."""
        return self.known.last_stable_offset_on(self.node_id)


def partitions(cluster: Cluster) -> Iterator[Partition]:
    """Every partition in the newest image."""
    for topic in cluster.topics.values():
        yield from topic.partitions


def all_partitions(cluster: Cluster) -> Iterator[Partition]:
    """Every partition in every broker's image, each object once."""
    return cluster.metadata.partitions()


def partition_of(cluster: Cluster, topic_id: bytes, index: int) -> Partition | None:
    """The partition in the newest image, or None."""
    return cluster.image.partition_by_id(topic_id, index)


def seen_by(broker: Broker, topic: str | bytes, index: int) -> Partition | None:
    """A partition in a broker's image, by the name or id of its topic."""
    image = broker.image
    if isinstance(topic, str):
        return image.partition(topic, index)
    return image.partition_by_id(topic, index)


def view_mark(cluster: Cluster) -> tuple[int, ...]:
    """A value that changes when there may be new partition objects."""
    newest = cluster.image
    if cluster.metadata.all_have_newest_image:
        return newest.epoch, id(newest)
    return newest.epoch, *[id(broker.image) for broker in cluster.processes.values()]


def replicas(cluster: Cluster, partition: Partition) -> list[ObservedReplica]:
    """The replicas of a partition, each by its own broker's image, also of stopped brokers.

    If all of them share the leader's log, the list has only the leader's.
    """
    processes = cluster.processes
    all_have_newest_image = cluster.metadata.all_have_newest_image
    if all_have_newest_image and not partition.own_replicas:
        leader = processes.get(partition.leader_id)
        return [] if leader is None else [_view_of(leader, partition)]
    if all_have_newest_image and cluster.image.partition_by_id(*partition.key) is partition:
        return [
            _view_of(processes[node_id], partition)
            for node_id in partition.replicas
            if node_id in processes
        ]
    found = []
    for node_id in partition.replicas:
        broker = processes.get(node_id)
        if broker is None:
            continue
        seen = broker.image.partition_by_id(*partition.key)
        if seen is not None and node_id in seen.replicas:
            found.append(_view_of(broker, seen))
    return found


def _view_of(broker: Broker, seen: Partition) -> ObservedReplica:
    node_id = broker.node_id
    leads = seen.leader_id == node_id and broker.state == RUNNING
    own = seen.own_replicas.get(node_id)
    if own is None:
        return ObservedReplica(
            node_id, seen.log, seen.high_watermark, leads, seen.leader_epoch, seen
        )
    return ObservedReplica(node_id, own.log, own.high_watermark, leads, seen.leader_epoch, seen)


def waits_in_vain(partition: Partition) -> bool:
    """Whether somebody watches a partition that nobody leads any more. A ShareFetch waits to its
    end, as Kafka's.
    """
    return partition.has_watchers and not all(
        isinstance(watcher, DelayedShareFetch) for watcher in partition._watchers
    )


def log_view(partition: Partition) -> LogView:
    """The log of a partition's leader, with its batches.

    A new leader that has not heard of its leadership still has a replica of its own.
    """
    log = log_of(partition, partition.leader_id)
    return LogView(
        partition.topic.name,
        partition.topic.topic_id,
        partition.index,
        partition.topic.is_internal,
        partition.leader_id,
        log.start_offset,
        log.end_offset,
        has_holes(log),
        list(_batches(log)),
    )


def _batches(log: ReplicaLog) -> Iterator[ObservedBatch]:
    pieces, _ = log.read(log.start_offset, log.end_offset, 1 << 40, at_least_one=True)
    for piece in pieces:
        for view in batches_of(piece):
            if view.last_offset >= log.start_offset:
                yield view


def transactional_batches(log: ReplicaLog, begin: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """The base offset and producer id of the transactional batches from that with `begin` up to
    `end`, and whether each is a marker.
    """
    pieces, _ = log.read(begin, end, 1 << 40, at_least_one=True)
    for piece in pieces:
        yield from transactional_batches_of(piece)


def has_holes(log: ReplicaLog) -> bool:
    """Whether compaction has removed offsets of a log."""
    return log._has_holes


def batches_between(log: ReplicaLog, begin: int, end: int) -> Iterator[ObservedBatch]:
    """The batches of a log from that with `begin` up to `end`."""
    pieces, _ = log.read(begin, end, 1 << 40, at_least_one=True)
    for piece in pieces:
        yield from batches_of(piece)


def bytes_between(log: ReplicaLog, begin: int, end: int) -> bytes:
    """The bytes of these batches."""
    pieces, _ = log.read(begin, end, 1 << 40, at_least_one=True)
    return b"".join(pieces)


def transaction_partition(cluster: Cluster, transactional_id: str) -> Partition | None:
    """The partition of `__transaction_state` for a transactional id, or None."""
    topic = cluster.topics.get(TRANSACTION_STATE_TOPIC)
    if topic is None:
        return None
    return topic.partitions[coordinator_partition(transactional_id, len(topic.partitions))]


def mentions(log: ReplicaLog, begin: int, end: int, transactional_id: str) -> bool:
    """Whether a log has records of a transactional id between two offsets."""
    return key_of(transactional_id) in bytes_between(log, begin, end)


def unreplicated_end(log: ReplicaLog, producer_id: int, high_watermark: int) -> int:
    """The offset of the marker that ended a producer's last transaction, if the high watermark has
    not passed it; else -1. A marker that is repeated ends nothing.
    """
    end = log.end_offset
    if high_watermark >= end or not any(
        batch.producer_id == producer_id and batch.marker is not None
        for batch in batches_between(log, high_watermark, end)
    ):
        return -1
    ended = -1
    for batch in batches_between(log, log.start_offset, end):
        if batch.producer_id == producer_id:
            if batch.marker is None:
                ended = -1
            elif ended < 0:
                ended = batch.base_offset
    return ended if ended >= high_watermark else -1


def pending_groups(cluster: Cluster, producer_id: int) -> list[tuple[str, Partition]]:
    """The groups with pending offsets of a producer's transaction at their coordinators, and the
    partition of each.
    """
    return [
        (group, shard.partition)
        for broker in cluster.brokers.values()
        if broker.has_groups
        for shard in broker.groups.loaded()
        if partition_of(cluster, *shard.partition.key) is shard.partition
        and shard.partition.leader_id == broker.node_id
        for group in shard.offsets.groups_of_producer(producer_id)
    ]


def groups_at_work(cluster: Cluster) -> list[str]:
    """The groups that are neither Empty nor Dead, with their states."""
    return [
        f"{view.group} is {view.state}"
        for view in group_views(cluster)
        if view.state not in ("Empty", "Dead")
    ]


def group_members(cluster: Cluster) -> dict[str, list[str]]:
    """The member ids of each group."""
    return {view.group: [each.member_id for each in view.members] for view in group_views(cluster)}


def is_stranded(partition: Partition, *, configured: bool) -> bool:
    """Whether the controller elects no leader, as in Kafka: the eligible brokers have no replica
    since a reassignment, or the ELR is empty since a change of the topic's configs.
    """
    if partition.leader_id >= 0:
        return False
    eligible = set(partition.elr)
    if not eligible:
        return configured and not partition.isr and not partition.last_known_elr
    return not eligible & set(partition.replicas)


class State(NamedTuple):
    """The controller's state of a partition in one partition epoch."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    replicas: tuple[int, ...]


class ReassignmentView(NamedTuple):
    """The replicas that a reassignment adds and removes."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


def state_of(partition: Partition) -> State:
    """The state of a partition in its image."""
    return State(
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.isr),
        partition.elr,
        tuple(partition.replicas),
    )


_NO_REASSIGNMENT = ReassignmentView((), ())


def reassignment_of(cluster: Cluster, partition: Partition) -> ReassignmentView:
    """The rest of a reassignment."""
    found = cluster.reassignments.get(partition.key)
    return (
        _NO_REASSIGNMENT
        if found is None
        else ReassignmentView(tuple(found.adding), tuple(found.removing))
    )


def liveness(cluster: Cluster) -> tuple[object, ...] | None:
    """A value that changes with brokers, their states and failed directories, and the controller.
    None unless all brokers have the newest image.
    """
    if not cluster.metadata.all_have_newest_image:
        return None
    registered = cluster.brokers
    found: list[object] = [cluster.controller_id, cluster.elr_enabled, len(registered)]
    for node_id, broker in cluster.processes.items():
        is_registered = registered.get(node_id) is broker
        found += (node_id, broker.state, is_registered, broker.fenced, broker.shutting_down)
        if broker.log_dirs.failed:
            found.append(tuple(broker.log_dirs.failed))
    return tuple(found)


def judged_by_controller(partition: Partition) -> tuple[object, ...]:
    """The controller's whole state of a partition."""
    return (
        partition,
        partition.partition_epoch,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.isr),
        partition.elr,
        tuple(partition.replicas),
    )


def is_able(cluster: Cluster, partition: Partition, node_id: int) -> bool:
    """Whether a broker is alive for the controller, with the directory of its replica."""
    broker = cluster.brokers.get(node_id)
    return (
        broker is not None
        and not broker.fenced
        and not broker.shutting_down
        and broker.log_dirs.is_online(partition)
    )


def ended_uncleanly(cluster: Cluster, node_id: int) -> bool:
    """Whether the last process of a stopped broker ended without a clean shutdown."""
    broker = cluster.processes.get(node_id)
    return broker is not None and broker.stopped_how == "unclean"


def groups_of_running(cluster: Cluster) -> list[set[int]]:
    """The running brokers in groups that reach each other."""
    running = [b.node_id for b in cluster.processes.values() if b.state == RUNNING]
    return cluster.replication.network.groups(running)


def known_to(cluster: Cluster, node_id: int, partition: Partition) -> Partition | None:
    """The partition in one broker's image; None without such a broker or partition."""
    broker = cluster.processes.get(node_id)
    return None if broker is None else broker.image.partition_by_id(*partition.key)


def is_disturbed(cluster: Cluster) -> bool:
    """Whether some follower may be unable to fetch."""
    replication = cluster.replication
    if replication._held or replication.network.cut_links:
        return True
    for broker in cluster.processes.values():  # noqa: SIM110 - asked at each look: `any` is slow
        if broker.state != RUNNING:
            return True
    return False


def can_fetch(cluster: Cluster, known: Partition, node_id: int) -> bool:
    """Whether a follower can fetch from the leader in its image."""
    return cluster.replication.can_fetch(known, node_id)


def has_newest_image(cluster: Cluster, node_id: int) -> bool:
    """Whether a broker has the newest metadata."""
    return cluster.metadata.has_newest_image(node_id)


def forwards_travel(cluster: Cluster) -> bool:
    """Whether some broker that reaches the controller forwards requests over the network."""
    network, controller_id = cluster.replication.network, cluster.controller_id
    return not network.is_quiet and any(
        not network.is_direct(node_id, controller_id, ApiKey.ENVELOPE)
        for node_id in cluster.processes
        if cluster.metadata.has_newest_image(node_id)
    )


def forwarding_ms(cluster: Cluster) -> int:
    """The longest delay of a forwarded request and its answer together."""
    delay_ms, controller_id = cluster.replication.network.delay_ms, cluster.controller_id
    both_ways = (delay_ms(n, controller_id) + delay_ms(controller_id, n) for n in cluster.processes)
    return max(both_ways, default=0)


def alters_at_once(cluster: Cluster, node_id: int) -> bool:
    """Whether the controller answers an AlterPartition of this broker without delay."""
    return has_newest_image(cluster, node_id) and cluster.replication.network.is_direct(
        node_id, cluster.controller_id, ApiKey.ALTER_PARTITION
    )


def log_of(known: Partition, node_id: int) -> ReplicaLog:
    """The log of a replica, which may be the leader's."""
    own = known.own_replicas.get(node_id)
    return known.log if own is None else own.log


def last_written(log: ReplicaLog) -> tuple[int, int]:
    """The log end offset, and the leader epoch of the last record; -1 for an empty log."""
    return log.end_offset, log.epochs.epoch_at(log.end_offset - 1)


def is_coordinated(cluster: Cluster, partition: Partition) -> bool | None:
    """Whether the leader of a coordinator's partition has loaded it, or is loading it; None if it
    need not.
    """
    broker = cluster.processes.get(partition.leader_id)
    if broker is None or broker.state != RUNNING or not broker.has_newest_image:
        return None
    if partition.deleted or partition.log.end_offset == partition.log.start_offset:
        return None
    shard = _any_shard_of(broker, partition)
    return shard is not None and shard.partition is partition


def coordinators_left(cluster: Cluster, partition: Partition) -> list[int]:
    """The brokers whose coordinators use a partition object that no image has any more."""
    found = shards(cluster, partition)
    return [broker.node_id for broker, shard in found if shard.partition is partition]


# -- pictures --------------------------------------------------------------------------------------


class BrokerPicture(NamedTuple):
    """The state of a broker."""

    state: str
    stopped_how: str
    fenced: bool
    fence_at_ms: int | None
    failed_dirs: tuple[str, ...]


class LogPicture(NamedTuple):
    """The extent of one replica's log, and the leader epoch of its last record."""

    start_offset: int
    end_offset: int
    last_epoch: int


class PartitionPicture(NamedTuple):
    """The state of a partition, and the extent of each replica's log."""

    name: str
    partition_epoch: int
    state: State
    last_known_elr: tuple[int, ...]
    reassignment: ReassignmentView
    logs: dict[int, LogPicture]


class Picture(NamedTuple):
    """The state of a cluster, to compare it with that after a restart or restore."""

    brokers: dict[int, BrokerPicture]
    partitions: dict[tuple[bytes, int], PartitionPicture]


def picture(cluster: Cluster) -> Picture:
    """The current state of the cluster."""
    brokers = {
        node_id: BrokerPicture(
            broker.state,
            broker.stopped_how,
            broker.fenced,
            cluster.controller.fencing_at_ms(node_id),
            tuple(sorted(broker.log_dirs.failed)),
        )
        for node_id, broker in cluster.processes.items()
    }
    return Picture(brokers, {each.key: _picture_of(cluster, each) for each in partitions(cluster)})


def _picture_of(cluster: Cluster, partition: Partition) -> PartitionPicture:
    logs = {}
    for node_id in partition.replicas:
        known = known_to(cluster, node_id, partition) or partition
        known = known if node_id in known.replicas else partition
        log = log_of(known, node_id)
        logs[node_id] = LogPicture(log.start_offset, *last_written(log))
    return PartitionPicture(
        f"{partition.topic.name}-{partition.index}",
        partition.partition_epoch,
        state_of(partition),
        partition.last_known_elr,
        reassignment_of(cluster, partition),
        logs,
    )


def copy_of(broker: Broker, seen: Partition) -> ObservedReplica | None:
    """A broker's replica of a partition in its image, or None."""
    return _view_of(broker, seen) if broker.node_id in seen.replicas else None


# -- coordinators ----------------------------------------------------------------------------------

Shard = GroupShard | TransactionShard | ShareShard


def shard_of(broker: Broker, partition: Partition) -> Shard | None:
    """A broker's loaded shard of a partition, or None."""
    found = _any_shard_of(broker, partition)
    return None if found is None or found.loading else found


def shard_of_group(broker: Broker, group_id: str) -> Shard | None:
    """A broker's loaded shard of a group's partition, or None."""
    topic = broker.image.topics.get(GROUP_METADATA_TOPIC)
    if topic is None:
        return None
    index = coordinator_partition(group_id, len(topic.partitions))
    return shard_of(broker, topic.partitions[index])


def shards(cluster: Cluster, partition: Partition) -> list[tuple[Broker, Shard]]:
    """The shards of a partition, also those that are loading, with their brokers."""
    attribute = _COORDINATORS.get(partition.topic.name)
    if attribute is None:
        return []
    index = partition.index
    return [
        (broker, shard)
        for broker in cluster.processes.values()
        if (coordinator := getattr(broker, attribute)) is not None
        and (shard := coordinator._shards.get(index)) is not None
        and not shard.unloaded
    ]


_COORDINATORS = {
    GROUPS: "_groups",
    TRANSACTIONS: "_transactions",
    SHARES: "_share_coordinator",
}


def _coordinator_of(broker: Broker, topic: str) -> Any:
    """A broker's coordinator with its state in a topic, or None."""
    attribute = _COORDINATORS.get(topic)
    return None if attribute is None else getattr(broker, attribute)


def _any_shard_of(broker: Broker, partition: Partition) -> Shard | None:
    """The same, also if it is loading."""
    coordinator = _coordinator_of(broker, partition.topic.name)
    found: Shard | None = None if coordinator is None else coordinator._shards.get(partition.index)
    return None if found is None or found.unloaded else found


def fits(broker: Broker, shard: Shard) -> bool:
    """Whether a shard has the partition, log and epoch of its broker's image."""
    partition = shard.partition
    seen = broker.image.partition_by_id(*partition.key)
    return (
        seen is partition
        and partition.leader_id == broker.node_id
        and shard._log is partition.log
        and (not isinstance(shard, TransactionShard) or shard.epoch == partition.leader_epoch)
    )


def answered_already(shard: Shard) -> list[int]:
    """The offsets of a shard's deferred answers that were sent already."""
    return [
        each.required_offset
        for each in shard._deferred
        if each.timer is not None and each.timer.callback is None
    ]


def not_loaded(broker: Broker) -> Iterator[Partition]:
    """The partitions with records that a running coordinator leads and does not load."""
    if broker.state != RUNNING:
        return
    for name in (GROUPS, TRANSACTIONS, SHARES):
        topic = broker.image.topics.get(name)
        for partition in topic.partitions if topic else ():
            is_empty = partition.log.start_offset == partition.log.end_offset
            leads = partition.leader_id == broker.node_id
            if leads and not is_empty and _any_shard_of(broker, partition) is None:
                yield partition


def _group_shards(cluster: Cluster) -> Iterator[GroupShard]:
    for broker in cluster.processes.values():
        if broker.has_groups:
            yield from broker.groups.loaded()


def generation_of(cluster: Cluster, group_id: str) -> int | None:
    """The generation of a classic group; None unless it has exactly one coordinator."""
    found = [
        group.generation
        for shard in _group_shards(cluster)
        if (group := shard.classic.get(group_id)) is not None
    ]
    return found[0] if len(found) == 1 else None


def stuck_members(cluster: Cluster, group_id: str, state: str) -> Iterator[str]:
    """A sentence for each wait in a classic group that cannot end in this state."""
    for shard in _group_shards(cluster):
        group = shard.classic.get(group_id)
        if group is None or group.state_name != state:
            continue
        if group.state is ClassicGroupState.PREPARING and group.join_deadline_ms is None:
            yield "the join phase has no end"
        if (
            group.state is ClassicGroupState.COMPLETING
            and group.pending_sync_members
            and not group.sync_deadline_ms
        ):
            yield "the sync phase has no end"
        for member in group.members.values():
            if group.state is not ClassicGroupState.COMPLETING and member.sync_callback is not None:
                yield f"{member.member_id} waits for its assignment"
            if group.state is ClassicGroupState.COMPLETING and member.join_callback is not None:
                yield f"{member.member_id} waits for the end of the join phase"


def behind_target(cluster: Cluster, node_id: int, group_id: str, member_id: str) -> Iterator[str]:
    """A sentence for each contradiction in the state of a consumer group's member."""
    broker = cluster.processes.get(node_id)
    for shard in broker.groups.loaded() if broker is not None else ():
        group = shard.consumers.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            continue
        if member.state is MemberState.STABLE and member.epoch != group.assignment_epoch:
            yield f"is stable at epoch {member.epoch}, not {group.assignment_epoch}"
        if member.state is MemberState.UNRELEASED and not _waits_for_others(group, member):
            yield "waits for partitions that no other member has"


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    for topic_id, partitions in group.target_of(member).items():
        missing = partitions - member.assigned.get(topic_id, {}).keys()
        for other in group.members.values():
            for owned in (other.assigned, other.revoking):
                if other is not member and not missing.isdisjoint(owned.get(topic_id, {})):
                    return True
    return False


def is_coordinator_log(topic: str) -> bool:
    """Whether coordinators keep their state in this topic."""
    return topic in COORDINATOR_LOGS
