"""Changes of partitions: the leader, the ISR and the replicas.

A *change* of a partition sets a target for the ISR or the replicas. The consequences are computed
in Kafka's order. A complete reassignment ends. Replicas that leave an ISR below min.insync.replicas
become *eligible leader replicas* (ELR, KIP-966): they have all acknowledged records, so one of them
may lead cleanly when the ISR is empty. A new leader is elected if the current one cannot lead. The
leader epoch rises by one if the leader changes, is lost or returns, and if a replica is removed. A
change of the ISR alone does not raise it (KAFKA-15021; before 3.6 it did).

The new leader is the first replica that is in sync and alive. Without one it may be the last known
leader, or in an unclean election any live replica.

Source: PartitionChangeBuilder, ReplicationControlManager.electLeader.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.events import (
    LOG_DIR_FAILED,
    TRUNCATION,
    UNCLEAN_ELECTION,
    IsrChanged,
    LeaderChanged,
    ReplicasChanged,
)
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.replication.replica import UNKNOWN_EPOCH
from mockbroker.core.replication.replication_control import (
    NOT_REASSIGNED,
    Reassignment,
    ReplicationControl,
)
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.alter_partition import AlterPartition


class Election(Enum):
    """The kind of an election (PartitionChangeBuilder.Election)."""

    ONLINE = "online"  # the current leader if possible, else an in-sync replica
    PREFERRED = "preferred"  # the first replica if possible
    UNCLEAN = "unclean"  # a replica outside the ISR if no other is possible
    CHOSEN = "chosen"  # a given replica, or none; not in Kafka


def can_lead(control: ReplicationControl, partition: Partition, node_id: int) -> bool:
    """Whether a broker is active and the replica's log directory online (LeaderAcceptor)."""
    return control.image.is_active(node_id) and control.image.brokers[node_id].log_dirs.is_online(
        partition
    )


class PartitionChange:
    """A change of one partition: set targets, then `apply`."""

    __slots__ = (
        "_control",
        "_last_known_elr",
        "_partition",
        "adding",
        "election",
        "elr",
        "isr",
        "removing",
        "replicas",
        "reverts_uncleanly",
        "times",
        "unclean_shutdown",
        "wanted_leader",
    )

    def __init__(self, control: ReplicationControl, partition: Partition) -> None:
        self._control = control
        partition = control.image.partition_by_id(*partition.key) or partition
        self._partition = partition
        reassignment = control.reassignment_of(partition)
        self.isr = list(partition.isr)
        self.replicas = list(partition.replicas)
        self.adding = list(reassignment.adding)
        self.removing = list(reassignment.removing)
        self.elr = list(partition.elr)
        self._last_known_elr = partition.last_known_elr
        self.election = Election.ONLINE
        self.wanted_leader = NO_LEADER
        self.unclean_shutdown = NO_LEADER  # a broker that may have lost records
        self.reverts_uncleanly = False  # the ISR is one replica that was out of sync
        self.times = 1  # the number of the controller's records; each raises the epochs

    def apply(self, reason: str) -> bool:
        """Compute the consequences and apply the change. Returns False if nothing changes."""
        control, partition = self._control, self._partition
        elr_enabled = control.elr_enabled
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
        if control.profile.bumps_epoch_on_isr_shrink and not set(partition.isr) <= set(self.isr):
            new_epoch = True
        self._note_last_known_leader(leader, elr_enabled)
        return self._carry_out(leader, new_epoch, unclean or self.reverts_uncleanly, reason)

    # -- consequences ------------------------------------------------------------------------------

    def _complete_reassignment(self) -> None:
        """End the reassignment if all target replicas are in sync."""
        if not self.adding and not self.removing:
            return
        isr = [node_id for node_id in self.isr if node_id not in self.removing]
        replicas = [node_id for node_id in self.replicas if node_id not in self.removing]
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, [], []

    def _populate_elr(self, elr_enabled: bool) -> None:
        """Add the replicas that have left an ISR below min.insync.replicas to the ELR.

        Brokers that are no longer replicas stay in the ELR, as in Kafka 4.3.1. If the ELR has no
        others, the last known leader is not elected: the partition has no leader until an unclean
        election or another reassignment.
        """
        if not elr_enabled or len(self.isr) >= self._min_isr():
            self.elr = []
            return
        candidates = {*self.elr, *self._partition.isr} - {*self.isr, self.unclean_shutdown}
        self.elr = sorted(candidates - self._added())

    def _added(self) -> set[int]:
        """The brokers that get a new, empty replica with this change.

        Kafka 4.3.1 keeps such a broker in the ELR if it was there before, and may elect it.
        """
        return set(self.replicas) - set(self._partition.replicas)

    def _min_isr(self) -> int:
        """min.insync.replicas, at most the replica count of the topic's first partition
        (ReplicationControlManager.getTopicEffectiveMinIsr).
        """
        topic = self._partition.topic
        return min(topic.configs.min_insync_replicas, len(topic.partitions[0].replicas))

    def _elect(self, elr_enabled: bool) -> tuple[int, bool]:
        """The leader, -1 for none, and whether the election is unclean."""
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
            if can_lead(self._control, self._partition, last_known):
                return last_known, True
        if self.election is Election.UNCLEAN:
            for node_id in self.replicas:
                if can_lead(self._control, self._partition, node_id):
                    return node_id, True
        return NO_LEADER, False

    def _may_lead(self, node_id: int) -> bool:
        in_sync = node_id in self.isr or (not self.isr and node_id in self.elr)
        return in_sync and can_lead(self._control, self._partition, node_id)

    def _note_last_known_leader(self, leader: int, elr_enabled: bool) -> None:
        partition = self._partition
        if not elr_enabled:
            return
        if not self.isr and partition.isr:
            # The former leader; if an action has removed it, the last in-sync replica.
            last = partition.leader_id
            self._last_known_elr = (partition.isr[-1] if last == NO_LEADER else last,)
        elif leader != NO_LEADER:
            self._last_known_elr = ()

    # -- applying ----------------------------------------------------------------------------------

    def _carry_out(self, leader: int, new_epoch: bool, unclean: bool, reason: str) -> bool:
        control, partition = self._control, self._partition
        former_leader, former_isr = partition.leader_id, partition.isr
        former_replicas = partition.replicas
        elr = tuple(self.elr)
        changed = (
            new_epoch
            or self.replicas != former_replicas
            or Reassignment(self.adding, self.removing) != control.reassignment_of(partition)
            or self.isr != former_isr
            or elr != partition.elr
            or self._last_known_elr != partition.last_known_elr
        )
        if not changed:
            return False
        partition = self._partition = control.metadata.unshare(partition)
        replicas_changed = self._replace_replicas()
        high_watermark = partition.high_watermark
        partition.elr = elr
        partition.last_known_elr = self._last_known_elr
        partition.raise_partition_epoch(self.times)
        control.metadata.changed(partition.topic)
        if new_epoch:
            loss = UNCLEAN_ELECTION if unclean else TRUNCATION
            if reason == LOG_DIR_FAILED:
                loss = reason
            partition.become_leader(leader, partition.leader_epoch + self.times, self.isr, loss)
        elif self.isr != former_isr:
            partition.set_isr(self.isr)
        if replicas_changed:
            self._emit_replicas(former_replicas)
        self._emit(former_leader, former_isr, high_watermark, new_epoch, unclean, reason)
        control.replication.assignment_changed(partition)
        if new_epoch:
            for observer in control.on_leader_elected:
                observer(partition)
        return True

    def _replace_replicas(self) -> bool:
        """Set the replicas and the state of the reassignment; returns whether they change."""
        control, partition = self._control, self._partition
        target = Reassignment(self.adding, self.removing)
        if self.replicas == partition.replicas and target == control.reassignment_of(partition):
            return False
        key = (partition.topic.topic_id, partition.index)
        if target == NOT_REASSIGNED:
            control.reassignments.pop(key, None)
        else:
            control.reassignments[key] = target
        control.replication.replace_replicas(partition, self.replicas)
        return True

    def _emit(
        self,
        former_leader: int,
        former_isr: list[int],
        high_watermark: int,
        new_epoch: bool,
        unclean: bool,
        reason: str,
    ) -> None:
        control, partition = self._control, self._partition
        now_ms, topic, index = control.runtime.now_ms(), partition.topic.name, partition.index
        isr = tuple(self.isr)
        if new_epoch:
            control.runtime.emit(
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
            control.runtime.emit(
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

    def _emit_replicas(self, former: list[int]) -> None:
        control, partition = self._control, self._partition
        control.runtime.emit(
            ReplicasChanged(
                control.runtime.now_ms(),
                partition.topic.name,
                partition.index,
                tuple(former),
                tuple(self.replicas),
                tuple(self.adding),
                tuple(self.removing),
            )
        )


# -- AlterPartition --------------------------------------------------------------------------------


def alter_partition(control: ReplicationControl, request: AlterPartition) -> ErrorCode:
    """Handle a leader's AlterPartition; returns the error code.

    It is refused from a former leader, with an old leader epoch or partition epoch, and with a new
    ISR member that is fenced, shutting down or restarted (KIP-497, KIP-841, KIP-903;
    ReplicationControlManager.validateAlterPartitionData).
    An ISR that completes a reassignment may end the leadership: NEW_LEADER_ELECTED.
    """
    partition = control.image.partition_by_id(*request.key)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if request.leader_epoch != partition.leader_epoch:
        behind = request.leader_epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if behind else ErrorCode.NOT_CONTROLLER
    if partition.leader_id != request.node_id:
        return ErrorCode.INVALID_REQUEST
    if request.partition_epoch != partition.partition_epoch:
        behind = request.partition_epoch < partition.partition_epoch
        return ErrorCode.INVALID_UPDATE_VERSION if behind else ErrorCode.NOT_CONTROLLER
    if not set(request.isr) <= set(partition.replicas) or request.node_id not in request.isr:
        return ErrorCode.INVALID_REQUEST
    if not all(control.image.is_active(node_id) for node_id in request.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    for node_id, epoch in request.broker_epochs.items():
        if node_id in request.isr and epoch not in (
            UNKNOWN_EPOCH,
            control.image.brokers[node_id].epoch,
        ):
            return ErrorCode.INELIGIBLE_REPLICA
    change = PartitionChange(control, partition)
    change.isr = request.isr
    change.apply(request.reason)
    partition = control.image.partition_by_id(*request.key) or partition
    if partition.leader_id != request.node_id:
        return ErrorCode.NEW_LEADER_ELECTED
    return ErrorCode.NONE


# -- a change of min.insync.replicas ---------------------------------------------------------------


def clear_eligible_leaders(control: ReplicationControl, topics: Iterable[Topic]) -> None:
    """Clear the ELRs and the last known leaders of topics.

    With another min.insync.replicas the high watermark may pass their log ends, so they may lack
    records that are acknowledged later. Kafka clears them with each write of the config, also of a
    higher value, and elects no leader: a partition without a leader waits for an unclean election
    (ClearElrRecord, ReplicationControlManager.removeTopicElrs).
    """
    if not control.elr_enabled:
        return
    for topic in topics:
        for known in list(topic.partitions):
            if known.elr or known.last_known_elr:
                partition = control.metadata.unshare(known)
                partition.elr = partition.last_known_elr = ()
                partition.raise_partition_epoch()
                control.metadata.changed(topic)


# -- the first leader ------------------------------------------------------------------------------


def elect_first_leaders(control: ReplicationControl, partitions: Iterable[Partition]) -> None:
    """Elect the leaders of new partitions without one, after mockbroker.partition.creation.ms."""
    waiting = [partition for partition in partitions if partition.leader_id == NO_LEADER]

    def elect() -> None:
        for partition in waiting:
            if partition.leader_id == NO_LEADER and not partition.deleted:
                PartitionChange(control, partition).apply("created")

    if waiting:
        delay_ms = control.configs.get_int("mockbroker.partition.creation.ms")
        control.runtime.timers.call_at(control.runtime.now_ms() + delay_ms, elect)


# -- ElectLeaders (KIP-460) ------------------------------------------------------------------------


def elect_preferred_leader(
    control: ReplicationControl, topic: str, index: int, times: int = 1
) -> None:
    """Elect the first replica, if it is alive and in sync. Raises ApiError if it is not elected.

    A request with a partition several `times` elects it as often, each time from the state before
    the request; each of the records raises the epochs (ReplicationControlManager).
    """
    partition = find_partition(control, topic, index)
    if partition.leader_id == partition.replicas[0]:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    change = PartitionChange(control, partition)
    change.election = Election.PREFERRED
    change.times = times
    if not change.apply("preferred_election"):
        raise _error(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)


def elect_unclean_leader(
    control: ReplicationControl, topic: str, index: int, times: int = 1
) -> None:
    """Elect any live replica, in sync or not, for a partition without a leader.

    `times` as above. Raises ApiError if none is elected.
    """
    partition = find_partition(control, topic, index)
    if partition.leader_id != NO_LEADER:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    change = PartitionChange(control, partition)
    change.election = Election.UNCLEAN
    change.times = times
    if not change.apply(UNCLEAN_ELECTION):
        raise _error(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def find_partition(control: ReplicationControl, topic: str, index: int) -> Partition:
    """The partition. Raises ApiError UNKNOWN_TOPIC_OR_PARTITION."""
    if topic not in control.image.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    partition = control.metadata.partition(topic, index)
    if partition is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}"
        )
    return partition


def _error(error: ErrorCode) -> ApiError:
    return ApiError(error, error.message)
