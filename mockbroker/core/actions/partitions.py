"""Actions on partitions: their leaders, followers and high watermarks.

Without an optional `partition`, an action applies to all partitions of the topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.events import UNCLEAN_ELECTION
from mockbroker.core.replication.elections import Election, PartitionChange, can_lead
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.validation import Count, Ms, nearest

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState
    from mockbroker.core.metadata.topic import Topic


class OnePartition(msgspec.Struct, frozen=True):
    """One partition."""

    topic: str
    partition: Count


class OneReplica(OnePartition, frozen=True):
    """A partition and one of its replicas."""

    node: int


class OneOffset(OnePartition, frozen=True):
    """The high watermark of one partition, which is then held there. A Produce with acks=all that
    waits for a higher one ends with `REQUEST_TIMED_OUT`; its records stay in the log.
    """

    offset: int


class AnyTopic(msgspec.Struct, frozen=True):
    """One topic, or all."""

    SHORT: ClassVar[str] = "topic"

    topic: str | None = None


class SomePartitions(msgspec.Struct, frozen=True):
    """One partition, or all of the topic."""

    SHORT: ClassVar[str] = "topic"

    topic: str
    partition: Count | None = None


class Watermark(SomePartitions, frozen=True, kw_only=True):
    """One partition, or all of the topic; `release` ends the hold."""

    release: bool = False


class LagFollower(SomePartitions, frozen=True, kw_only=True):
    """A follower that lags by some time, or without `by` stops fetching, until `release`."""

    node: int
    by_ms: Ms | None = msgspec.field(default=None, name="by")
    release: bool = False

    def __post_init__(self) -> None:
        if self.by_ms == 0:
            raise ValueError("a follower lags by a positive number of ms, not by 0")
        if self.release and self.by_ms is not None:
            raise ValueError("release does not go with by")


class ShrinkIsr(SomePartitions, frozen=True, kw_only=True):
    """The followers that leave the ISR of a partition, or of all of the topic."""

    nodes: list[int]


class PartitionActions:
    """Actions on partitions."""

    # -- leaders -----------------------------------------------------------------------------------

    @action(OneReplica)
    @staticmethod
    def move_leader(cluster: ClusterState, wanted: OneReplica) -> None:
        """Make another live in-sync replica the leader. No record is lost."""
        move_leader(
            cluster,
            find_partition(cluster, wanted.topic, wanted.partition),
            wanted.node,
        )

    @action(OneReplica)
    @staticmethod
    def elect_unclean(cluster: ClusterState, wanted: OneReplica) -> None:
        """Make any live replica the leader, in sync or not. Records that it lacks are lost."""
        found = find_partition(cluster, wanted.topic, wanted.partition)
        _check_replica(found, wanted.node)
        if not can_lead(cluster.replication_control, found, wanted.node):
            raise ActionError(f"broker {wanted.node} is not alive, or has lost its log directory")
        change = PartitionChange(cluster.replication_control, found)
        change.election, change.wanted_leader = Election.CHOSEN, wanted.node
        change.isr = [wanted.node]
        change.apply(UNCLEAN_ELECTION)

    @action(OnePartition)
    @staticmethod
    def drop_leader(cluster: ClusterState, wanted: OnePartition) -> None:
        """Leave a partition without a leader until one is elected; the ISR stays."""
        found = find_partition(cluster, wanted.topic, wanted.partition)
        if found.leader_id == NO_LEADER:
            raise ActionError(f"{name_of(found)} has no leader already")
        change = PartitionChange(cluster.replication_control, found)
        change.election, change.wanted_leader = Election.CHOSEN, NO_LEADER
        change.apply("dropped")

    @action(AnyTopic)
    @staticmethod
    def shuffle_leaders(cluster: ClusterState, wanted: AnyTopic) -> int:
        """Make a random member of the ISR the leader of each partition, of one topic or of all;
        returns the number of moves. The cluster's seed decides.
        """
        one, every = wanted.topic, cluster.topics.values()
        topics = every if one is None else [find_topic(cluster, one)]
        moved = 0
        for found in [partition for each in topics for partition in each.partitions]:
            able = [
                node_id
                for node_id in found.isr
                if can_lead(cluster.replication_control, found, node_id)
            ]
            if not able:
                continue
            change = PartitionChange(cluster.replication_control, found)
            change.election = Election.CHOSEN
            change.wanted_leader = able[cluster.runtime.ids.below(len(able))]
            moved += change.apply("shuffled")
        return moved

    # -- followers ---------------------------------------------------------------------------------

    @action(LagFollower)
    @staticmethod
    def lag_follower(cluster: ClusterState, wanted: LagFollower) -> None:
        """Delay a follower's records, or stop its fetches, until it is released.

        A new leader does not end the lag. A released follower catches up and returns to the ISR.
        """
        node_id = wanted.node
        for found in find_partitions(cluster, wanted.topic, wanted.partition, node_id):
            if wanted.release:
                cluster.replication.release(found, node_id)
            elif wanted.by_ms is None:
                cluster.replication.hold(found, node_id)
            else:
                cluster.replication.lag(found, node_id, wanted.by_ms)

    @action(ShrinkIsr)
    @staticmethod
    def shrink_isr(cluster: ClusterState, wanted: ShrinkIsr) -> None:
        """Remove followers from the ISR now, and stop their fetches until `lag_follower` releases
        them.
        """
        chosen = {
            node_id: find_partitions(cluster, wanted.topic, wanted.partition, node_id)
            for node_id in wanted.nodes
        }
        for node_id, found in chosen.items():
            for each in found:
                if each.leader_id == node_id:
                    raise ActionError(
                        f"broker {node_id} leads {name_of(each)}: it is always in sync"
                    )
        for node_id, found in chosen.items():
            for each in found:
                cluster.replication.hold(each, node_id)
                cluster.replication.mark_lagging(each, node_id)
                change = PartitionChange(cluster.replication_control, each)
                change.isr = [member for member in each.isr if member != node_id]
                change.apply("shrunk")

    # -- watermarks --------------------------------------------------------------------------------

    @action(Watermark)
    @staticmethod
    def hold_high_watermark(cluster: ClusterState, wanted: Watermark) -> None:
        """Hold the high watermark until it is released, although records are replicated.

        A Produce with acks=all gets REQUEST_TIMED_OUT (7) after its timeout, as in Kafka when
        followers lag. Its records stay in the log.
        """
        for found in find_led(cluster, wanted.topic, wanted.partition):
            if wanted.release:
                cluster.replication.remove_high_watermark_limit(found)
            else:
                cluster.replication.limit_high_watermark(found, found.high_watermark)

    @action(OneOffset)
    @staticmethod
    def set_high_watermark(cluster: ClusterState, wanted: OneOffset) -> None:
        """Set the high watermark to any offset of the log, also backwards, and hold it there.

        In Kafka it never decreases while the leader stays the same. Until `hold_high_watermark`
        releases it, a Produce with acks=all gets REQUEST_TIMED_OUT (7) after its timeout, also one
        that waits already, unless all its records are below `offset`. They stay in the log.
        """
        (found,) = find_led(cluster, wanted.topic, wanted.partition)
        log = found.log
        if not log.start_offset <= wanted.offset <= log.end_offset:
            raise ActionError(
                f"{wanted.offset} is not within the log of {name_of(found)}: its offsets are "
                f"{log.start_offset} to {log.end_offset}"
            )
        cluster.replication.limit_high_watermark(found, wanted.offset)
        found.force_high_watermark(wanted.offset)

    @action(Watermark)
    @staticmethod
    def hold_last_stable_offset(cluster: ClusterState, wanted: Watermark) -> None:
        """Hold the last stable offset until `release`; read_committed consumers read up to it."""
        for found in find_led(cluster, wanted.topic, wanted.partition):
            limit = None if wanted.release else found.last_stable_offset
            found.limit_last_stable_offset(limit)


def move_leader(cluster: ClusterState, partition: Partition, node_id: int) -> None:
    """Make a live in-sync replica the leader. Raises ActionError for another replica."""
    _check_replica(partition, node_id)
    if node_id not in partition.isr:
        raise ActionError(
            f"broker {node_id} is not in the ISR of {name_of(partition)}, which is "
            f"{partition.isr}; elect_unclean makes it the leader, and records that it lacks are "
            "lost"
        )
    if not can_lead(cluster.replication_control, partition, node_id):
        raise ActionError(f"broker {node_id} is not alive, or has lost its log directory")
    change = PartitionChange(cluster.replication_control, partition)
    change.election, change.wanted_leader = Election.CHOSEN, node_id
    change.apply("moved")


# -- look-ups of arguments -------------------------------------------------------------------------
# Each raises ActionError if there is none.


def find_topic(cluster: ClusterState, name: str) -> Topic:
    """The topic of this name."""
    topic = cluster.topics.get(name)
    if topic is None:
        raise ActionError(f"there is no topic {name!r}{nearest(name, cluster.topics)}")
    return topic


def find_partition(cluster: ClusterState, topic: str, index: int) -> Partition:
    """One partition of the newest image."""
    partitions = find_topic(cluster, topic).partitions
    if not 0 <= index < len(partitions):
        raise ActionError(f"topic {topic!r} has partitions 0 to {len(partitions) - 1}, not {index}")
    return partitions[index]


def find_partitions(
    cluster: ClusterState, topic: str, index: int | None, node_id: int | None = None
) -> list[Partition]:
    """The partition, or all of the topic, or those with a replica on broker `node_id`."""
    if index is not None:
        found = find_partition(cluster, topic, index)
        if node_id is not None:
            _check_replica(found, node_id)
        return [found]
    held = [
        partition
        for partition in find_topic(cluster, topic).partitions
        if node_id is None or node_id in partition.replicas
    ]
    if not held:
        raise ActionError(f"broker {node_id} has no replica of {topic!r}")
    return held


def find_led(cluster: ClusterState, topic: str, index: int | None) -> list[Partition]:
    """The partition objects of the leaders: one partition, or all of the topic."""
    return [
        cluster.metadata.leader_object(partition)
        for partition in find_partitions(cluster, topic, index)
    ]


def name_of(partition: Partition) -> str:
    """The text of a partition: `orders-0`."""
    return f"{partition.topic.name}-{partition.index}"


def _check_replica(partition: Partition, node_id: int) -> None:
    if node_id not in partition.replicas:
        raise ActionError(
            f"broker {node_id} is not a replica of {name_of(partition)}; its replicas are "
            f"{partition.replicas}"
        )
