"""Changing a partition: who leads it, who is in sync, which brokers hold it.

Whatever happens to brokers or replicas comes down to a *change* of partitions: a target for the ISR
or the replicas is set, and what follows from it is worked out in Kafka's order. A reassignment that
is complete ends; replicas that leave an ISR below min.insync.replicas stay *eligible* (ELR,
KIP-966): they hold all that was acknowledged, so one of them may lead cleanly once the ISR is
empty; a leader is elected if the present one cannot go on. The leader epoch rises by one when the
leader changes, is lost or comes back, and when a replica is removed; changes of the ISR alone leave
it (KAFKA-15021; releases before 3.6 raised it).

The next leader is the first of the replicas, in their order, that is in sync and alive. Without
one, the last known leader may lead, then, in an unclean election, anybody alive.

Source: PartitionChangeBuilder, ReplicationControlManager.electLeader.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.events import IsrChanged, LeaderChanged, ReplicasChanged
from mockbroker.core.log.told import tell_lost
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.topic import Topic

ELR_FEATURE = "eligible.leader.replicas.version"


class Election(Enum):
    """Which leader is wanted."""

    ONLINE = "online"  # the present one if possible, else any that is in sync
    PREFERRED = "preferred"  # the first replica if possible
    UNCLEAN = "unclean"  # rather one that is not in sync than none
    CHOSEN = "chosen"  # the one that is named, or none: not an election of Kafka's


class Reassignment(NamedTuple):
    """Replicas on their way in and out of a partition's list of replicas."""

    adding: list[int]
    removing: list[int]


NOT_REASSIGNED = Reassignment([], [])


def reassignment_of(cluster: Cluster, partition: Partition) -> Reassignment:
    """What is under way for the partition; empty lists when nothing is."""
    key = (partition.topic.topic_id, partition.index)
    return cluster.reassignments.get(key, NOT_REASSIGNED)


def can_lead(cluster: Cluster, partition: Partition, node_id: int) -> bool:
    """Whether a broker is alive, stays, and has the partition's directory (LeaderAcceptor)."""
    broker = cluster.brokers.get(node_id)
    return broker is not None and broker.active and broker.log_dirs.has(partition)


class PartitionChange:
    """What one partition shall become; set targets, then `apply`."""

    __slots__ = (
        "_cluster",
        "_last_known_elr",
        "_partition",
        "adding",
        "election",
        "elr",
        "isr",
        "removing",
        "replicas",
        "unclean_shutdown",
        "wanted_leader",
    )

    def __init__(self, cluster: Cluster, partition: Partition) -> None:
        self._cluster = cluster
        partition = cluster.image.partition_by_id(*partition.key) or partition
        self._partition = partition
        reassignment = reassignment_of(cluster, partition)
        self.isr = list(partition.isr)
        self.replicas = list(partition.replicas)
        self.adding = list(reassignment.adding)
        self.removing = list(reassignment.removing)
        self.elr = list(partition.elr)
        self._last_known_elr = partition.last_known_elr
        self.election = Election.ONLINE
        self.wanted_leader = NO_LEADER
        self.unclean_shutdown = NO_LEADER  # a broker that may have lost the end of its logs

    def apply(self, reason: str) -> bool:
        """Work out what follows, and let it be so. False if nothing changes."""
        cluster, partition = self._cluster, self._partition
        elr_enabled = cluster.elr_enabled
        self._complete_reassignment()
        self._populate_elr(elr_enabled)
        leader, unclean = self._elect(elr_enabled)
        new_epoch = leader != partition.leader_id
        if new_epoch and leader in self.elr:
            self.isr = [leader]
            self.elr.remove(leader)
        elif new_epoch and unclean:
            self.isr = [leader]
            self.elr = []
        elif not set(partition.replicas) <= set(self.replicas):
            new_epoch = True
        if not self.isr and not elr_enabled:
            self.isr = list(partition.isr)
        if cluster.profile.bumps_epoch_on_isr_shrink and not set(partition.isr) <= set(self.isr):
            new_epoch = True
        self._note_last_known_leader(leader, elr_enabled)
        return self._carry_out(leader, new_epoch, unclean, reason)

    # -- what follows ------------------------------------------------------------------------------

    def _complete_reassignment(self) -> None:
        """End the reassignment once all that shall stay are in sync."""
        if not self.adding and not self.removing:
            return
        isr = [node_id for node_id in self.isr if node_id not in self.removing]
        replicas = [node_id for node_id in self.replicas if node_id not in self.removing]
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, [], []

    def _populate_elr(self, elr_enabled: bool) -> None:
        """Who left an ISR that is too small now still holds all that was acknowledged.

        Nobody is taken out for not being a replica any more. An ELR that is left with such brokers
        alone keeps the last known leader from being elected: the partition has no leader until an
        unclean election or another reassignment (so does Kafka 4.3.1).
        """
        if not elr_enabled or len(self.isr) >= self._min_isr():
            self.elr = []
            return
        candidates = {*self.elr, *self._partition.isr} - {*self.isr, self.unclean_shutdown}
        self.elr = sorted(candidates - self._added())

    def _added(self) -> set[int]:
        """The brokers that get a replica with this change, which is empty. Kafka 4.3.1 takes one
        for eligible that was so before it lost its replica, and may elect it.
        """
        return set(self.replicas) - set(self._partition.replicas)

    def _min_isr(self) -> int:
        """min.insync.replicas, but no more than the first partition of the topic has replicas
        (ReplicationControlManager.getTopicEffectiveMinIsr).
        """
        topic = self._partition.topic
        return min(topic.configs.min_insync_replicas, len(topic.partitions[0].replicas))

    def _elect(self, elr_enabled: bool) -> tuple[int, bool]:
        """The leader, -1 for none, and whether acknowledged records may be lost with it."""
        present = self._partition.leader_id
        if self.election is Election.CHOSEN:
            return self.wanted_leader, self.wanted_leader not in (NO_LEADER, *self._partition.isr)
        if self.election is Election.PREFERRED and self._may_lead(self.replicas[0]):
            return self.replicas[0], False
        if self._may_lead(present):
            return present, False
        for node_id in self.replicas:
            if self._may_lead(node_id):
                return node_id, False
        if elr_enabled and not self.isr and not self.elr and len(self._last_known_elr) == 1:
            (last_known,) = self._last_known_elr
            if can_lead(self._cluster, self._partition, last_known):
                return last_known, True
        if self.election is Election.UNCLEAN:
            for node_id in self.replicas:
                if can_lead(self._cluster, self._partition, node_id):
                    return node_id, True
        return NO_LEADER, False

    def _may_lead(self, node_id: int) -> bool:
        in_sync = node_id in self.isr or (not self.isr and node_id in self.elr)
        return in_sync and can_lead(self._cluster, self._partition, node_id)

    def _note_last_known_leader(self, leader: int, elr_enabled: bool) -> None:
        partition = self._partition
        if not elr_enabled:
            return
        if not self.isr and partition.isr:
            # The one that led; or, where an action had dropped the leader, the last one in sync.
            last = partition.leader_id
            self._last_known_elr = (partition.isr[-1] if last == NO_LEADER else last,)
        elif leader != NO_LEADER:
            self._last_known_elr = ()

    # -- letting it be so --------------------------------------------------------------------------

    def _carry_out(self, leader: int, new_epoch: bool, unclean: bool, reason: str) -> bool:
        cluster, partition = self._cluster, self._partition
        former_leader, former_isr = partition.leader_id, partition.isr
        former_replicas = partition.replicas
        elr = tuple(self.elr)
        changed = (
            new_epoch
            or self.replicas != former_replicas
            or Reassignment(self.adding, self.removing) != reassignment_of(cluster, partition)
            or self.isr != former_isr
            or elr != partition.elr
            or self._last_known_elr != partition.last_known_elr
        )
        if not changed:
            return False
        partition = self._partition = cluster.metadata.own(partition)
        replicas_changed = self._replace_replicas()
        high_watermark = partition.high_watermark
        partition.elr = elr
        partition.last_known_elr = self._last_known_elr
        partition.partition_epoch += 1
        cluster.metadata_changed(partition.topic)
        if new_epoch:
            former_log = partition.log
            partition.become_leader(leader, partition.leader_epoch + 1, self.isr)
            tell_lost(cluster, partition, former_log, unclean=unclean, why=reason)
        elif self.isr != former_isr:
            partition.set_isr(self.isr)
        if replicas_changed:
            self._tell_replicas(former_replicas)
        self._tell(former_leader, former_isr, high_watermark, new_epoch, unclean, reason)
        cluster.replication.assignment_changed(partition)
        if new_epoch:
            cluster.controller.balance.note(partition)
            cluster.leader_changed(partition)
        return True

    def _replace_replicas(self) -> bool:
        """Put the new list of replicas and the state of the reassignment in place."""
        cluster, partition = self._cluster, self._partition
        target = Reassignment(self.adding, self.removing)
        if self.replicas == partition.replicas and target == reassignment_of(cluster, partition):
            return False
        key = (partition.topic.topic_id, partition.index)
        if target == NOT_REASSIGNED:
            cluster.reassignments.pop(key, None)
        else:
            cluster.reassignments[key] = target
        cluster.replication.replace_replicas(partition, self.replicas)
        return True

    def _tell(
        self,
        former_leader: int,
        former_isr: list[int],
        high_watermark: int,
        new_epoch: bool,
        unclean: bool,
        reason: str,
    ) -> None:
        cluster, partition = self._cluster, self._partition
        now_ms, topic, index = cluster.now_ms(), partition.topic.name, partition.index
        isr = tuple(self.isr)
        if new_epoch:
            cluster.tell(
                LeaderChanged(
                    now_ms,
                    topic,
                    index,
                    partition.leader_id,
                    partition.leader_epoch,
                    former_leader,
                    isr,
                    unclean,
                    reason,
                )
            )
        if self.isr != former_isr:
            cluster.tell(
                IsrChanged(
                    now_ms,
                    topic,
                    index,
                    tuple(former_isr),
                    isr,
                    high_watermark,
                    partition.log_end_offset,
                    reason,
                )
            )

    def _tell_replicas(self, former: list[int]) -> None:
        cluster, partition = self._cluster, self._partition
        cluster.tell(
            ReplicasChanged(
                cluster.now_ms(),
                partition.topic.name,
                partition.index,
                tuple(former),
                tuple(self.replicas),
                tuple(self.adding),
                tuple(self.removing),
            )
        )


# -- another min.insync.replicas -------------------------------------------------------------------


def clear_eligible_leaders(cluster: Cluster, topics: Iterable[Topic]) -> None:
    """Forget the eligible leaders of these topics and their last known ones.

    Under another min.insync.replicas the high watermark passes what they hold, so that they may
    lack what is acknowledged from then on. Kafka clears them whenever the config is written,
    raised as well, and elects nobody then: a partition that has no leader waits for an unclean
    election (ClearElrRecord, ReplicationControlManager.removeTopicElrs).
    """
    if not cluster.elr_enabled:
        return
    for topic in topics:
        for known in list(topic.partitions):
            if known.elr or known.last_known_elr:
                partition = cluster.metadata.own(known)
                partition.elr = partition.last_known_elr = ()
                partition.partition_epoch += 1
                cluster.metadata_changed(topic)


# -- the first leader ------------------------------------------------------------------------------


def elect_first_leaders(cluster: Cluster, partitions: Iterable[Partition]) -> None:
    """Let those of the new partitions that have to wait for a leader get it in time."""
    waiting = [partition for partition in partitions if partition.leader_id == NO_LEADER]

    def elect() -> None:
        for partition in waiting:
            if partition.leader_id == NO_LEADER and not partition.deleted:
                PartitionChange(cluster, partition).apply("created")

    if waiting:
        delay_ms = cluster.config_int("mockbroker.partition.creation.ms")
        cluster.timers.call_at(cluster.now_ms() + delay_ms, elect)


# -- elections that someone asks for (KIP-460) -----------------------------------------------------


def elect_preferred_leader(cluster: Cluster, topic: str, index: int) -> None:
    """Let the first replica lead, if it is alive and in sync. Raises ApiError when it does not."""
    partition = find_partition(cluster, topic, index)
    if partition.leader_id == partition.replicas[0]:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    change = PartitionChange(cluster, partition)
    change.election = Election.PREFERRED
    if not change.apply("preferred election"):
        raise _error(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)


def elect_unclean_leader(cluster: Cluster, topic: str, index: int) -> None:
    """Let any live replica lead a leaderless partition, in sync or not. Raises ApiError."""
    partition = find_partition(cluster, topic, index)
    if partition.leader_id != NO_LEADER:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    change = PartitionChange(cluster, partition)
    change.election = Election.UNCLEAN
    if not change.apply("unclean election"):
        raise _error(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def find_partition(cluster: Cluster, topic: str, index: int) -> Partition:
    """The partition; raises ApiError UNKNOWN_TOPIC_OR_PARTITION when there is none."""
    if topic not in cluster.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic!r}.")
    partition = cluster.partition(topic, index)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}."
        )
    return partition


def _error(error: ErrorCode) -> ApiError:
    return ApiError(error, error.sentence)
