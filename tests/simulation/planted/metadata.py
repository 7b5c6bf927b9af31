"""Bugs of metadata on its way to brokers: images that are old, and taking over the newest."""

from __future__ import annotations

from mockbroker.core.metadata.metadata_cache import MetadataCache
from mockbroker.core.metadata.metadata_publisher import MetadataPublisher
from mockbroker.core.replication.partition import Partition
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("A stale leader's log is not parted from the newest image's partition.")
def stale_leader_has_no_replica() -> Planting:
    return rewritten(
        MetadataCache.unshare,
        "own[leader.node_id] = Replica(leader.node_id, current.log, current.high_watermark)",
        "pass",
    )


@planted("The controller changes partitions in the images of brokers that are cut from it.")
def images_are_not_parted() -> Planting:
    return rewritten(MetadataCache.unshare, "if not sharing:", "if sharing is not None:")


@planted("A broker that reaches the controller again does not apply the changes.")
def nothing_is_applied() -> Planting:
    return rewritten(MetadataPublisher.publish, "self._apply(broker, partition)", "continue")


@planted("Requests that waited for the controller are not sent when it can be reached again.")
def forwarded_requests_are_forgotten() -> Planting:
    return rewritten(MetadataPublisher.publish, "for call in waiting:\n        call()", "pass")


@planted("Coordinators do not load again when their broker reaches the controller again.")
def coordinators_are_not_reloaded() -> Planting:
    return rewritten(MetadataPublisher.publish, "self._reload_coordinators(broker)", "pass")


@planted("Requests that wait at a stale leader get no answer when it leads no longer.")
def stale_waiters_wait_on() -> Planting:
    return rewritten(
        MetadataPublisher._apply,
        "known.copy_metadata_from(current)\n        known.notify()",
        "known.copy_metadata_from(current)",
    )


@planted("A broker that led without knowing better brings no log of its own.")
def stale_leader_brings_no_log() -> Planting:
    return rewritten(
        MetadataPublisher._keep_log, "if known.leader_id == node_id:", "if known.leader_id < 0:"
    )


@planted("A broker whose image with its leadership comes late does not begin its epoch.")
def late_leader_begins_no_epoch() -> Planting:
    return rewritten(MetadataPublisher._keep_log, "current.begin_epoch(new_leader=True)", "pass")


@planted("A leader that reaches the controller again takes its followers for as far as it is.")
def leading_on_trusts_followers() -> Planting:
    return rewritten(
        MetadataPublisher._continue_leadership,
        "n: followers.get(n) or FollowerState.reset(n, in_sync=n in known.isr, now_ms=now_ms)",
        "n: FollowerState.caught_up(n, known.log, now_ms)",
    )


@planted("A leader that reaches the controller again does not get its new ISR.")
def leading_on_keeps_the_isr() -> Planting:
    return rewritten(
        MetadataPublisher._continue_leadership, "known.copy_metadata_from(current)", "pass"
    )


@planted("Brokers that lose the controller go on to share logs with those that reach it.")
def losing_parts_no_logs() -> Planting:
    return rewritten(
        MetadataPublisher.freeze, "self._replication.assignment_changed(partition)", "continue"
    )


@planted("A broker does not take over the ISR of the newest image.")
def isr_is_not_taken_over() -> Planting:
    return rewritten(
        Partition.copy_metadata_from,
        "self.replicas, self.isr, self.isr_in_flight = newer.replicas, newer.isr, _NO_ISR",
        "self.replicas, self.isr_in_flight = newer.replicas, _NO_ISR",
    )
