"""Bugs of groups of both kinds, and of the offsets they commit."""

from __future__ import annotations

from mockbroker.core.groups import loader, machine, rebalance
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.consumer import reconcile
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.shard import GroupShard
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("A new generation has the number of the one before.")
def generation_stays() -> Planting:
    return rewritten(
        rebalance._complete_join,
        "group.generation += 1",
        "group.generation = max(group.generation, 1)",
    )


@planted("Assignments that belong to an earlier generation are taken.")
def late_assignments_count() -> Planting:
    return rewritten(
        rebalance._check_sync,
        "if sync.generation != group.generation:",
        "if sync.generation > group.generation:",
    )


@planted("A member of an earlier generation may commit.")
def late_commits_count() -> Planting:
    return rewritten(
        ClassicGroup.check_commit,
        "if generation != self.generation:",
        "if generation > self.generation:",
    )


@planted("Members that have not joined in time stay in the group.")
def absent_members_stay() -> Planting:
    return rewritten(
        rebalance._complete_join,
        "if member.join_callback is None and member.instance_id is None:",
        "if member.join_callback is None and member.instance_id is not None:",
    )


@planted("A group with a leader that is gone gets no other one.")
def leader_is_not_replaced() -> Planting:
    return rewritten(
        ClassicGroup.remove_member, "self.leader = next(iter(self.members), None)", "pass"
    )


@planted("Followers that wait for their assignment are not answered.")
def followers_get_no_assignment() -> Planting:
    return rewritten(
        rebalance._propagate_assignment,
        "if callback is not None:",
        "if callback is not None and group.leader == member.member_id:",
    )


@planted("A rebalance does not tell those who wait for an assignment.")
def rebalance_leaves_syncs_waiting() -> Planting:
    return rewritten(
        rebalance.prepare_rebalance,
        "_propagate_assignment(group, {}, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)",
        "pass",
    )


@planted("The session of a member that is gone never ends.")
def sessions_never_end() -> Planting:
    return rewritten(
        rebalance.on_tick,
        "_on_session_expired(group, timer, now_ms)",
        "continue",
    )


@planted("Members that do not send SyncGroup are waited for without end.")
def sync_has_no_deadline() -> Planting:
    return rewritten(
        rebalance._complete_join,
        "group.sync_deadline_ms = group.timer_start_ms(now_ms) + group.rebalance_timeout_ms()",
        "pass",
    )


@planted("A join phase with members that do not come back has no end.")
def join_has_no_deadline() -> Planting:
    return rewritten(
        rebalance.prepare_rebalance,
        "group.join_deadline_ms = group.timer_start_ms(now_ms) + timeout_ms",
        "pass",
    )


@planted("A member's assignment is stored, and then sent under the generation after it.")
def stored_assignments_of_the_past() -> Planting:
    return rewritten(
        rebalance.on_assignment_persisted,
        "persist.image.generation == group.generation and ",
        "",
    )


@planted("The former self of a static member goes on unfenced.")
def static_members_are_not_fenced() -> Planting:
    return rewritten(
        ClassicGroup.validate_member,
        "if owner != member_id:",
        "if owner != member_id and False:",
    )


@planted("What a static member waits for stays unanswered when its next self comes.")
def replaced_member_is_not_answered() -> Planting:
    return rewritten(
        machine._replace_static,
        "group.fail_waiting_requests(old, ErrorCode.FENCED_INSTANCE_ID, old_id)",
        "old.join_callback = old.sync_callback = None",
    )


@planted("When the coordinator moves, members that wait are not answered.")
def unloading_leaves_members_waiting() -> Planting:
    return rewritten(
        machine._on_unload,
        "group.fail_waiting_requests(member, unload.error, member.member_id)",
        "pass",
    )


@planted("A consumer is given a partition that its owner has not given up yet.")
def partitions_change_hands_too_early() -> Planting:
    return rewritten(
        reconcile._is_free,
        "owner_epoch == NO_EPOCH",
        "owner_epoch <= inputs.epoch",
    )


@planted("A consumer that is to give partitions up is not waited for.")
def revoking_is_not_awaited() -> Planting:
    return rewritten(
        reconcile._advance,
        "must_revoke = bool(lost) and owns_any(inputs.reported, lost)",
        "must_revoke = False",
    )


@planted("What a consumer has given up is still taken for owned.")
def revoked_stays_owned() -> Planting:
    return rewritten(
        ConsumerGroup._update_indexes,
        "self._remove_partition_epochs(old.revoking, old.epoch)",
        "pass",
    )


@planted("What a consumer has still to give up is taken for free.")
def revoking_counts_as_free() -> Planting:
    return rewritten(
        ConsumerGroup._update_indexes,
        "self._add_partition_epochs(new.revoking, new.epoch)",
        "pass",
    )


@planted("A member that keeps its partitions is given the epoch before its own.")
def member_epoch_goes_back() -> Planting:
    return rewritten(
        reconcile._at_epoch,
        "epoch=epoch, previous_epoch=member.epoch",
        "epoch=max(epoch - 1, 1), previous_epoch=member.epoch",
    )


@planted("Committed offsets that are not in the log count all the same.")
def unwritten_commits_count() -> Planting:
    return rewritten(GroupShard.commit, "if error is NONE:", "if True:")


@planted("Offsets committed in a transaction are lost when the coordinator moves.")
def loading_ignores_markers() -> Planting:
    return rewritten(loader.replay_stored, "_replay_control(shard.offsets, header, record)", "pass")


@planted("A coordinator that moves takes offsets of open transactions for committed.")
def loading_commits_what_is_pending() -> Planting:
    return rewritten(loader._store_offset, "elif producer_id < 0:", "elif producer_id is not None:")


@planted("A coordinator that moves reads only what is below the high watermark.")
def loading_stops_at_the_watermark() -> Planting:
    return rewritten(
        loader.replay_stored,
        "if header.is_control:",
        "if header.base_offset >= shard.partition.high_watermark:\n        return\n"
        "    if header.is_control:",
    )


@planted("The tombstone of an offset is passed over when the log is read.")
def tombstones_are_passed_over() -> Planting:
    return rewritten(loader._store_offset, "offsets.remove(*key)", "pass")


@planted("Of two offsets for a partition the older one stays in force.")
def first_commit_stays() -> Planting:
    return rewritten(
        GroupShard.commit,
        "store.commit(group_id, topic, partition, value)",
        "store.get(group_id, topic, partition) or store.commit(group_id, topic, partition, value)",
    )
