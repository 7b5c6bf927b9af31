"""Bugs of the controller: fencing, elections, eligible leaders, changes of the ISR."""

from __future__ import annotations

from mockbroker.core.brokers.controller import Controller
from mockbroker.core.replication import elections
from mockbroker.core.replication.elections import PartitionChange
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("A leader with an older state of the partition may change the ISR.")
def old_partition_epochs_count() -> Planting:
    return rewritten(
        elections.alter_partition,
        "if request.partition_epoch != partition.partition_epoch:",
        "if request.partition_epoch > partition.partition_epoch:",
    )


@planted("A fenced broker may be taken into the ISR, as long as another member is alive.")
def fenced_brokers_join() -> Planting:
    return rewritten(
        elections.alter_partition,
        "if not all(control.image.is_active(node_id) for node_id in request.isr):",
        "if not any(control.image.is_active(node_id) for node_id in request.isr):",
    )


@planted("A change of the ISR does not raise the partition epoch.")
def partition_epoch_stays() -> Planting:
    return rewritten(
        PartitionChange._carry_out,
        "partition.raise_partition_epoch(self.times)",
        "partition.raise_partition_epoch(new_epoch)",
    )


@planted("Another leader leads under the epoch of the one before.")
def leader_epoch_stays() -> Planting:
    return rewritten(
        PartitionChange._carry_out,
        "partition.become_leader(leader, partition.leader_epoch + self.times, self.isr, loss)",
        "partition.become_leader(leader, partition.leader_epoch + (leader < 0), self.isr, loss)",
    )


@planted("The leader epoch is not raised when the leader is lost and comes back.")
def epoch_stays_without_a_leader() -> Planting:
    return rewritten(
        PartitionChange._carry_out,
        "partition.become_leader(leader, partition.leader_epoch + self.times, self.isr, loss)",
        "partition.become_leader(leader, partition.leader_epoch + (leader >= 0), self.isr, loss)",
    )


@planted("A broker that is not alive may be elected.")
def the_dead_may_lead() -> Planting:
    return rewritten(
        PartitionChange._may_lead,
        "return in_sync and can_lead(self._control, self._partition, node_id)",
        "return in_sync",
    )


@planted("Whoever is alive may be elected, in sync or not, and nobody calls it unclean.")
def anybody_alive_may_lead() -> Planting:
    return rewritten(
        PartitionChange._may_lead,
        "in_sync = node_id in self.isr or (not self.isr and node_id in self.elr)",
        "in_sync = bool(self.isr or self.elr)",
    )


@planted("An eligible leader may be elected while there is still an ISR.")
def eligible_leaders_go_first() -> Planting:
    return rewritten(
        PartitionChange._may_lead,
        "(not self.isr and node_id in self.elr)",
        "node_id in self.elr",
    )


@planted("An unclean election passes for a clean one.")
def unclean_passes_for_clean() -> Planting:
    return rewritten(
        PartitionChange._elect,
        "for node_id in self.replicas:\n            if can_lead("
        "self._control, self._partition, node_id):\n                return node_id, True",
        "for node_id in self.replicas:\n            if can_lead("
        "self._control, self._partition, node_id):\n                return node_id, False",
    )


@planted("An unclean election is held where the topic does not allow it.")
def unclean_elections_always() -> Planting:
    return rewritten(
        PartitionChange._elect, "if self.election is Election.UNCLEAN:", "if not self.isr:"
    )


@planted("Replicas stay eligible although the ISR is large enough without them.")
def eligible_for_ever() -> Planting:
    return rewritten(
        PartitionChange._populate_elr,
        "if not elr_enabled or len(self.isr) >= self._min_isr():",
        "if not elr_enabled or len(self.isr) > self._min_isr():",
    )


@planted("A broker that lost the end of its logs stays an eligible leader.")
def unclean_shutdown_stays_eligible() -> Planting:
    return rewritten(
        PartitionChange._populate_elr,
        "- {*self.isr, self.unclean_shutdown}",
        "- {*self.isr}",
    )


@planted("A broker that comes back from an unclean end is taken at its word.")
def unclean_end_is_forgotten() -> Planting:
    return rewritten(
        Controller.start,
        "if broker.stopped_how == UNCLEAN or not known:",
        "if not known:",
    )


@planted("A reassignment ends before those that come are in sync.")
def reassignment_ends_early() -> Planting:
    return rewritten(
        PartitionChange._complete_reassignment,
        "if isr and replicas and set(replicas) <= set(isr):",
        "if isr and replicas and set(isr) <= set(replicas):",
    )


@planted("A fenced broker stays in the ISR.")
def fencing_leaves_the_isr() -> Planting:
    return rewritten(Controller.fence, "self._leave_isrs(broker, reason)", "pass")


@planted("The controller stays on a broker that is fenced.")
def fenced_controller_stays() -> Planting:
    return rewritten(Controller.fence, "self._resign_if_controller(broker)", "pass")


@planted("A broker that is unfenced does not make leaderless partitions look for a leader.")
def unfencing_elects_nobody() -> Planting:
    return rewritten(Controller.unfence, 'self._change(partition).apply("unfenced")', "pass")


@planted("A broker whose heartbeats come again is fenced all the same when its time is up.")
def heartbeats_do_not_renew() -> Planting:
    return rewritten(Controller.heartbeat_received, "self._cancel_fencing(broker)", "pass")


@planted("A broker that finds the controller again is not unfenced.")
def found_again_and_still_fenced() -> Planting:
    return rewritten(Controller.links_changed, "self.heartbeat_received(broker)", "continue")


@planted("A paused broker that goes on is not unfenced.")
def resumed_and_still_fenced() -> Planting:
    return rewritten(Controller.resume, "self.heartbeat_received(broker)", "pass")


@planted("A broker that is started again keeps the broker epoch of its former process.")
def broker_epoch_stays() -> Planting:
    return rewritten(Controller.start, "broker.epoch = self.next_broker_epoch()", "pass")


@planted("When brokers part, the controller stays where the fewest are.")
def controller_stays_with_the_few() -> Planting:
    return rewritten(
        Controller._move_controller, "self.take_over(min(alive or largest[0]))", "pass"
    )


@planted(
    "A controlled shutdown does not take the broker out of the ISRs of its followers' leaders."
)
def shutdown_moves_no_leaders() -> Planting:
    return rewritten(Controller.stop, 'self._leave_isrs(broker, "controlled_shutdown")', "pass")


@planted("The ISR of a partition with an unclean leader keeps the members it had.")
def unclean_leader_keeps_isr() -> Planting:
    return rewritten(
        PartitionChange.apply,
        "elif new_epoch and unclean:\n        self.isr = [leader]",
        "elif new_epoch and unclean:\n        self.isr = [leader, *self.isr]",
    )


@planted("A log directory that fails leaves its replicas in their ISRs.")
def failed_directory_stays_in_sync() -> Planting:
    return rewritten(
        Controller._leave_isrs,
        "(path is None or dir_of(partition) == path)",
        "path is None",
    )
