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
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.events import IsrChanged, LeaderChanged, ReplicasChanged
from mockbroker.core.log.emitters import emit_lost
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
    """Which leader is wanted."""

    ONLINE = "online"  # the present one if possible, else any that is in sync
    PREFERRED = "preferred"  # the first replica if possible
    UNCLEAN = "unclean"  # rather one that is not in sync than none
    CHOSEN = "chosen"  # the one that is named, or none: not an election of Kafka's


def can_lead(control: ReplicationControl, partition: Partition, node_id: int) -> bool:
    """Whether a broker is alive, stays, and has the partition's directory (LeaderAcceptor)."""
    return control.image.is_active(node_id) and control.image.brokers[node_id].log_dirs.has(
        partition
    )


class PartitionChange:
    """What one partition shall become; set targets, then `apply`."""

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
        self.unclean_shutdown = NO_LEADER  # a broker that may have lost the end of its logs
        self.times = 1  # how many records the controller writes of it; each raises the epochs

    def apply(self, reason: str) -> bool:
        """Work out what follows, and let it be so. False if nothing changes."""
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
            # The one that led; or, where an action had dropped the leader, the last one in sync.
            last = partition.leader_id
            self._last_known_elr = (partition.isr[-1] if last == NO_LEADER else last,)
        elif leader != NO_LEADER:
            self._last_known_elr = ()

    # -- letting it be so --------------------------------------------------------------------------

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
        partition = self._partition = control.metadata.own(partition)
        replicas_changed = self._replace_replicas()
        high_watermark = partition.high_watermark
        partition.elr = elr
        partition.last_known_elr = self._last_known_elr
        partition.partition_epoch += self.times
        control.metadata.changed(partition.topic)
        if new_epoch:
            former_log = partition.log
            partition.become_leader(leader, partition.leader_epoch + self.times, self.isr)
            emit_lost(control.runtime, partition, former_log, unclean=unclean, why=reason)
        elif self.isr != former_isr:
            partition.set_isr(self.isr)
        if replicas_changed:
            self._tell_replicas(former_replicas)
        self._tell(former_leader, former_isr, high_watermark, new_epoch, unclean, reason)
        control.replication.assignment_changed(partition)
        if new_epoch:
            for observer in control.on_leader_elected:
                observer(partition)
        return True

    def _replace_replicas(self) -> bool:
        """Put the new list of replicas and the state of the reassignment in place."""
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

    def _tell(
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

    def _tell_replicas(self, former: list[int]) -> None:
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


# -- an ISR that a leader wants --------------------------------------------------------------------


def alter_partition(control: ReplicationControl, request: AlterPartition) -> ErrorCode:
    """Carry a leader's request for another ISR out; the error that it gets back.

    Refused are a leader that is none any more, a request made from an older state of the partition,
    and members that are fenced or about to leave, or are another process by now than the one that
    has caught up (KIP-497, KIP-841, KIP-903; ReplicationControlManager.validateAlterPartitionData).
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
    return ErrorCode.NONE


# -- another min.insync.replicas -------------------------------------------------------------------


def clear_eligible_leaders(control: ReplicationControl, topics: Iterable[Topic]) -> None:
    """Forget the eligible leaders of these topics and their last known ones.

    Under another min.insync.replicas the high watermark passes what they hold, so that they may
    lack what is acknowledged from then on. Kafka clears them whenever the config is written,
    raised as well, and elects nobody then: a partition that has no leader waits for an unclean
    election (ClearElrRecord, ReplicationControlManager.removeTopicElrs).
    """
    if not control.elr_enabled:
        return
    for topic in topics:
        for known in list(topic.partitions):
            if known.elr or known.last_known_elr:
                partition = control.metadata.own(known)
                partition.elr = partition.last_known_elr = ()
                partition.partition_epoch += 1
                control.metadata.changed(topic)


# -- the first leader ------------------------------------------------------------------------------


def elect_first_leaders(control: ReplicationControl, partitions: Iterable[Partition]) -> None:
    """Let those of the new partitions that have to wait for a leader get it in time."""
    waiting = [partition for partition in partitions if partition.leader_id == NO_LEADER]

    def elect() -> None:
        for partition in waiting:
            if partition.leader_id == NO_LEADER and not partition.deleted:
                PartitionChange(control, partition).apply("created")

    if waiting:
        delay_ms = control.configs.get_int("mockbroker.partition.creation.ms")
        control.runtime.timers.call_at(control.runtime.now_ms() + delay_ms, elect)


# -- elections that someone asks for (KIP-460) -----------------------------------------------------


def elect_preferred_leader(
    control: ReplicationControl, topic: str, index: int, times: int = 1
) -> None:
    """Let the first replica lead, if it is alive and in sync. Raises ApiError when it does not.

    A request that names a partition several `times` has it elected as often, each time by the state
    before the request: every record of it raises the epochs (ReplicationControlManager).
    """
    partition = find_partition(control, topic, index)
    if partition.leader_id == partition.replicas[0]:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    change = PartitionChange(control, partition)
    change.election = Election.PREFERRED
    change.times = times
    if not change.apply("preferred election"):
        raise _error(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)


def elect_unclean_leader(
    control: ReplicationControl, topic: str, index: int, times: int = 1
) -> None:
    """Let any live replica lead a leaderless partition, in sync or not, as `times` above. Raises
    ApiError.
    """
    partition = find_partition(control, topic, index)
    if partition.leader_id != NO_LEADER:
        raise _error(ErrorCode.ELECTION_NOT_NEEDED)
    change = PartitionChange(control, partition)
    change.election = Election.UNCLEAN
    change.times = times
    if not change.apply("unclean election"):
        raise _error(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def find_partition(control: ReplicationControl, topic: str, index: int) -> Partition:
    """The partition; raises ApiError UNKNOWN_TOPIC_OR_PARTITION when there is none."""
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
