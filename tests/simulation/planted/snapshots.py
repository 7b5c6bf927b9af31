"""Bugs of snapshots: what is left out when a cluster is captured, or restored otherwise."""

from __future__ import annotations

from mockbroker.core.log.producer_state import ProducerStateManager
from mockbroker.core.snapshot import capture, logs, restore
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("Of the leader epochs of a log only that of its start is captured.")
def later_epochs_are_not_captured() -> Planting:
    return rewritten(
        logs.copy_of, "log.epochs.fork(log.end_offset + 1)", "log.epochs.fork(log.start_offset + 1)"
    )


@planted("The eligible leaders of a partition are not captured.")
def eligible_leaders_are_not_captured() -> Planting:
    return rewritten(capture.partition_image, "partition.elr,", "(),")


@planted("The ISR of a partition is captured as if everybody were in sync.")
def isr_is_captured_whole() -> Planting:
    return rewritten(capture.partition_image, "tuple(partition.isr),", "replicas,")


@planted("Replicas with a log of their own are restored as if they shared the leader's.")
def own_replicas_are_not_restored() -> Planting:
    return rewritten(
        restore._partition, "partition.own_replicas[own.node_id] = replica", "continue"
    )


@planted("Followers are restored as caught up.")
def followers_are_restored_caught_up() -> Planting:
    return rewritten(
        restore._partition,
        "FollowerState.reset(\n",
        "(lambda n, **_: FollowerState.caught_up(n, partition.log, cluster.runtime.now_ms()))(\n",
    )


@planted("Ids that were given out are given out again after a restart.")
def ids_begin_anew() -> Planting:
    return rewritten(restore.restore, "cluster.runtime.ids.go_beyond(*image.ids)", "pass")


@planted("Coordinators do not load the partitions that a restored cluster leads.")
def restored_coordinators_sleep() -> Planting:
    return rewritten(restore._start_partition, "cluster.leader_changed(partition)", "pass")


@planted("A restored broker that ended uncleanly is taken at its word.")
def unclean_ends_are_not_restored() -> Planting:
    return rewritten(restore._put_broker, "broker.stopped_how = image.stopped_how", "pass")


@planted("A partition that is restored otherwise goes on under its epoch.")
def restored_epochs_stay() -> Planting:
    return rewritten(
        restore._raise_epoch,
        "_is_unchanged(partition, former)",
        "former is not partition",
    )


@planted("The partition epoch begins anew.")
def partition_epoch_is_not_restored() -> Planting:
    return rewritten(
        restore._partition, "partition.partition_epoch = saved.partition_epoch", "pass"
    )


@planted("A reassignment that was under way is not restored.")
def reassignments_are_not_restored() -> Planting:
    return rewritten(restore._partition, "if saved.adding or saved.removing:", "if False:")


@planted("A broker whose session was running out is fenced no more after a restart.")
def fencing_is_not_restored() -> Planting:
    return rewritten(restore._start, "if each.fence_at_ms is not None", "if False")


@planted("The aborted transactions of a log are not copied.")
def copies_forget_aborts() -> Planting:
    return rewritten(ProducerStateManager.fork, "copy.aborted = list(self.aborted)", "pass")


@planted("The open transactions of a log are not copied.")
def copies_forget_open_transactions() -> Planting:
    return rewritten(ProducerStateManager.fork, "copy._ongoing = dict(self._ongoing)", "pass")


@planted("Producers of a copied log share what they are known for with the original.")
def copies_share_producers() -> Planting:
    return rewritten(
        ProducerStateManager.fork,
        "{key: entry.fork() for key, entry in self._entries.items()}",
        "dict(self._entries)",
    )
