"""Bugs of leaders and followers: high watermarks, ISRs, fetching, truncating."""

from __future__ import annotations

from mockbroker.core.replication import fetcher
from mockbroker.core.replication.fetcher import ReplicaFetcher
from mockbroker.core.replication.leader import LeaderReplication
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker.core.replication.replica_manager import ReplicaManager
from tests.simulation.planted.planting import Planting, planted, put, rewritten


@planted("The high watermark does not wait for a replica that is about to join the ISR.")
def watermark_passes_isr_in_flight() -> Planting:
    return rewritten(
        Partition._should_wait_for,
        "if node_id in self.isr or node_id in self.isr_in_flight:",
        "if node_id in self.isr:",
    )


@planted("The high watermark waits for the leader alone.")
def watermark_is_the_log_end() -> Planting:
    return rewritten(
        Partition.advance_high_watermark, "offset = state.fetched_offset", "offset = log.end_offset"
    )


@planted("A follower counts as far as the leader's log went when it last fetched.")
def fetched_means_sent() -> Planting:
    return rewritten(
        Partition.advance_high_watermark,
        "offset = state.fetched_offset",
        "offset = max(state.fetched_offset, state.last_fetch_end_offset)",
    )


@planted("The high watermark may go back within an epoch.")
def watermark_goes_back() -> Planting:
    return rewritten(
        Partition.advance_high_watermark,
        "if offset <= self.high_watermark:",
        "if offset == self.high_watermark:",
    )


@planted("The LSO does not follow when the high watermark moves.")
def stable_offset_stands_still() -> Planting:
    return rewritten(Partition.advance_high_watermark, "self._refresh_last_stable_offset()", "pass")


@planted("The high watermark rises while the ISR is below min.insync.replicas.")
def watermark_rises_below_min_isr() -> Planting:
    return rewritten(Partition.advance_high_watermark, "if self.under_min_isr:", "if not self.isr:")


@planted("A batch with acks=all is taken when the ISR is one short of min.insync.replicas.")
def min_isr_is_off_by_one() -> Planting:
    return rewritten(
        Partition.under_min_isr,
        "count = len(self.isr)",
        "count = len(self.isr) + 1",
    )


@planted("A follower takes the leader's high watermark over even beyond its own log.")
def follower_watermark_beyond_log() -> Planting:
    return rewritten(
        Replica.update_high_watermark,
        "offset = max(min(offset, self.log.end_offset), self.log.start_offset)",
        "offset = max(offset, self.log.start_offset)",
    )


@planted("A follower that cuts its log keeps its high watermark.")
def truncation_keeps_watermark() -> Planting:
    return rewritten(
        Replica.truncate, "self.high_watermark = min(self.high_watermark, offset)", "pass"
    )


@planted("A follower is caught up if it is at the end of the log as it was at its last fetch.")
def caught_up_with_the_past() -> Planting:
    return rewritten(
        FollowerState.is_caught_up,
        "self.fetched_offset == leader_end_offset",
        "self.fetched_offset <= leader_end_offset",
    )


@planted("A follower that is behind the high watermark is taken into the ISR.")
def isr_takes_laggards() -> Planting:
    return rewritten(
        LeaderReplication._maybe_expand_isr,
        "and offset >= partition.high_watermark",
        "and offset >= partition.log.start_offset",
    )


@planted("A follower may join the ISR before it has reached the start of the leader's epoch.")
def isr_ignores_epoch_start() -> Planting:
    return rewritten(
        LeaderReplication._maybe_expand_isr,
        "and offset >= partition.leader_epoch_start_offset",
        "and partition.leader_epoch_start_offset >= 0",
    )


@planted("A refused change of the ISR stays in flight for ever.")
def refused_isr_stays_in_flight() -> Planting:
    return rewritten(
        LeaderReplication._revert_isr, "self._requested, partition.isr_in_flight = None, ()", "pass"
    )


@planted("A lagging follower is left in the ISR, because its fetch counts, not how far it is.")
def laggards_stay() -> Planting:
    return rewritten(
        LeaderReplication._maybe_shrink_isr,
        "if not state.is_caught_up(end_offset, now_ms, lag_ms_max)",
        "if now_ms - state.last_fetch_ms > lag_ms_max",
    )


@planted("The leader does not tell a follower whose log is longer than the epoch was.")
def divergence_by_epoch_alone() -> Planting:
    return rewritten(
        LeaderReplication._divergence,
        "if epoch < fetch.last_epoch or end_offset < fetch.offset:",
        "if epoch < fetch.last_epoch:",
    )


@planted("The leader does not tell a follower that it has an epoch of its own.")
def divergence_by_offset_alone() -> Planting:
    return rewritten(
        LeaderReplication._divergence,
        "if epoch < fetch.last_epoch or end_offset < fetch.offset:",
        "if end_offset < fetch.offset:",
    )


@planted("The leader reports a divergence that is right at the log end of the follower.")
def divergence_is_off_by_one() -> Planting:
    return rewritten(
        LeaderReplication._divergence, "end_offset < fetch.offset:", "end_offset <= fetch.offset:"
    )


@planted("The leader does not look at the epoch of a follower's fetch.")
def leader_ignores_fetch_epochs() -> Planting:
    return rewritten(
        LeaderReplication._refusal,
        "error = partition.check_leader_epoch(hop.fetcher_request.leader_epoch)",
        "error = 0",
    )


@planted(
    "A parked fetch of a follower is dropped without an answer when it has waited long enough."
)
def parked_fetches_are_dropped() -> Planting:
    return rewritten(LeaderReplication._end_wait, "self._answer_parked(hop)", "continue")


@planted("A high watermark that rises with a follower's fetch completes no waiting request.")
def watermark_completes_nothing() -> Planting:
    return rewritten(
        LeaderReplication._update_follower_fetch_state,
        "if advanced or partition.low_watermark > low_watermark:",
        "if not advanced and partition.low_watermark > low_watermark:",
    )


@planted("A parked fetch is not looked at again when there is more to take.")
def parked_fetches_sleep_on() -> Planting:
    return rewritten(
        LeaderReplication._complete_parked,
        "log.end_offset != hop.fetcher_request.offset",
        "log.end_offset < 0",
    )


@planted("A new leader takes its followers for caught up.")
def new_leader_trusts_followers() -> Planting:
    return rewritten(
        Partition.begin_epoch,
        "FollowerState.reset(node_id, in_sync=node_id in self.isr, now_ms=now_ms)",
        "FollowerState.caught_up(node_id, self.log, now_ms)",
    )


@planted("A new leader does not note where its epoch begins.")
def epoch_start_is_not_noted() -> Planting:
    return rewritten(
        Partition.begin_epoch,
        "self.log.epochs.assign(self.leader_epoch, self.log.end_offset)",
        "pass",
    )


@planted("Where another log becomes the leader's, the others share it without having it.")
def switched_log_is_everybodys() -> Planting:
    return rewritten(Partition._switch_log, "self.own_replicas[node_id] = copy", "continue")


@planted("A follower that is not in the ISR may share the leader's log.")
def outsiders_share_the_log() -> Planting:
    return rewritten(
        ReplicaManager.needs_own_copy,
        "or node_id not in partition.isr",
        "or node_id not in partition.replicas",
    )


@planted("A follower that is cut off from its leader goes on to share its log.")
def sharing_across_a_cut() -> Planting:
    return rewritten(
        ReplicaManager.needs_own_copy,
        "or not self.network.is_direct(node_id, leader_id, _FETCH, partition)",
        "",
    )


@planted("A broker that stands still goes on to get what its leader writes.")
def sharing_while_paused() -> Planting:
    return rewritten(ReplicaManager.needs_own_copy, "or not metadata.is_running(node_id)", "")


@planted("A follower takes late answers for answers to its present question.")
def late_answers_count() -> Planting:
    return rewritten(
        ReplicaFetcher.handle,
        "event.number != self._number:",
        "event.number > self._number:",
    )


@planted("A follower does not notice that its leader leads under another epoch now.")
def same_leader_new_epoch() -> Planting:
    return rewritten(
        ReplicaFetcher._begin,
        "if leader == self.following:",
        "if self.following and leader.leader_id == self.following.leader_id:",
    )


@planted("A follower that was refused does not ask again.")
def refused_follower_gives_up() -> Planting:
    return put(
        fetcher.TRANSITIONS,
        fetcher.RefusedPartition,
        (fetcher.FetcherAction.DROP,) * 4,
    )


@planted("A follower that got no answer does not ask again.")
def lost_answer_ends_fetching() -> Planting:
    return put(fetcher.TRANSITIONS, fetcher.RetryDue, (fetcher.FetcherAction.DROP,) * 4)


@planted("A follower cuts its log where its own epoch ended, and not where the leader's did.")
def cut_where_own_epoch_ended() -> Planting:
    return rewritten(
        fetcher.truncation_point,
        "TruncationPoint(min(own_end, end_offset, log_end_offset), True)",
        "TruncationPoint(min(own_end, log_end_offset), True)",
    )


@planted("A follower cuts one record less than it should.")
def cut_is_off_by_one() -> Planting:
    return rewritten(
        fetcher.truncation_point,
        "TruncationPoint(min(own_end, end_offset, log_end_offset), True)",
        "TruncationPoint(min(own_end, end_offset + 1, log_end_offset), True)",
    )


@planted("A follower whose epoch the leader does not know cuts nothing.")
def unknown_epoch_cuts_nothing() -> Planting:
    return rewritten(
        fetcher.truncation_point,
        "return TruncationPoint(min(own_end, log_end_offset), False)",
        "return TruncationPoint(log_end_offset, True)",
    )


@planted("A follower that is beyond the leader's log end stays there.")
def beyond_the_end_is_kept() -> Planting:
    return rewritten(
        ReplicaFetcher._move_into_range,
        "if answer.log_end_offset < log.end_offset:",
        "if answer.log_end_offset < 0:",
    )


@planted("The question for the leader that is lost on its way is not given up.")
def unsent_questions_are_forgotten() -> Planting:
    return rewritten(
        ReplicaManager.handle_loss,
        "self._retry_after(hop.key, hop.replica, hop.fetcher_request.number, timeout_ms)",
        "pass",
    )
