"""The leader's side of replication: it serves followers' fetches and requests changes of the ISR.

The leader serves a follower's fetch as it serves a consumer's, but up to its log end. The fetch
offset is the follower's log end offset: with it the ISR may expand and the high watermark may
advance. A fetch without new records is *parked* until there are records, or for
`replica.fetch.wait.max.ms`; a higher watermark is sent with the response. A follower that has not
caught up for `replica.lag.time.max.ms` leaves the ISR.

The leader sends AlterPartition to the controller, which alone changes the ISR. The response may be
late, be an error, or never arrive.

Source: ReplicaManager.fetchMessages, Partition.updateFollowerFetchState, maybeShrinkIsr,
maybeExpandIsr, submitAlterPartition.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.log.emitters import emit_watermark
from mockbroker.core.log.leader_epoch_cache import NO_OFFSET
from mockbroker.core.replication.alter_partition import (
    RETRY_BACKOFF_MS,
    AlterPartition,
    Reaction,
    reaction_to,
)
from mockbroker.core.replication.fetcher import (
    Answer,
    Diverged,
    EpochEnd,
    Fetch,
    Fetched,
    OutOfRange,
)
from mockbroker.core.replication.follower_hops import (
    AnyFollowerHop,
    FetchHop,
    OffsetForLeaderEpochHop,
)
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.replication.replica import FollowerState
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.replication.replica_manager import ReplicaManager
    from mockbroker.core.timing.timers import Timer


_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN_LEADER_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)


class _Parked(NamedTuple):
    """A delayed fetch."""

    hop: FetchHop
    arrived_ms: int


class LeaderReplication:
    """The leader's state of one partition, for followers with a log of their own."""

    __slots__ = (
        "_awaits_response",
        "_closed",
        "_configs",
        "_emitted_high_watermark",
        "_expand",
        "_manager",
        "_metadata",
        "_parked",
        "_partition",
        "_requested",
        "_retry",
        "_runtime",
        "_shrink",
        "_wait",
    )

    def __init__(self, manager: ReplicaManager, partition: Partition) -> None:
        self._manager = manager
        self._runtime = manager.runtime
        self._configs = manager.configs
        self._metadata = manager.metadata
        self._partition = partition
        self._parked: dict[int, _Parked] = {}
        self._shrink: Timer | None = None
        self._expand: Timer | None = None
        self._requested: AlterPartition | None = None  # its ISR is in flight
        self._awaits_response = False  # `_requested` has no response yet
        self._retry: Timer | None = None  # repeats `_requested`
        self._wait: Timer | None = None
        self._emitted_high_watermark = partition.high_watermark
        self._closed = False
        partition.watch(self)

    def close(self) -> None:
        """End: no such follower is left, or another broker leads."""
        self._closed = True
        self._partition.unwatch(self)
        for timer in (self._shrink, self._expand, self._wait, self._retry):
            if timer is not None:
                timer.cancel()
        self._shrink = self._expand = self._wait = self._retry = None
        partition, requested = self._partition, self._requested
        if (
            requested is not None
            and not self._awaits_response
            and partition.isr_in_flight is requested.isr
        ):
            partition.isr_in_flight = ()  # no retry would follow
        self._refuse_parked()

    def reconcile(self) -> None:
        """Adapt to a new leadership, ISR or set of followers."""
        partition = self._partition
        self._refuse_parked()
        if (
            partition.isr_in_flight
            and (self._requested is None or partition.isr_in_flight is not self._requested.isr)
            and self._metadata.has_newest_image(partition.leader_id)
        ):
            partition.isr_in_flight = ()  # requested while the controller was unreachable
        self._expand_for_parked()
        self._watch_lag()

    def _expand_for_parked(self) -> None:
        """Request to add parked followers to the ISR: their next fetches would be equal."""
        partition = self._partition
        self._drop_abandoned()
        for node_id in list(self._parked):
            state = partition.followers.get(node_id)
            if state is not None and self._manager.can_fetch(partition, node_id):
                self._maybe_expand_isr(state)

    def _drop_abandoned(self) -> None:
        """Drop the fetches of followers that have stopped."""
        if not self._parked:
            return
        for node_id, (hop, _) in list(self._parked.items()):
            fetcher = hop.replica.fetcher
            if fetcher is None or not fetcher.is_in_flight(hop.fetcher_request.number):
                del self._parked[node_id]

    def _refuse_parked(self) -> None:
        """Refuse parked fetches of another epoch, or of former followers."""
        partition = self._partition
        self._drop_abandoned()
        for node_id, (hop, _) in list(self._parked.items()):
            error = self._refusal(hop)
            if error:
                del self._parked[node_id]
                if node_id in partition.replicas:
                    self._answer(hop, hop.error_answer(error))

    # -- answering ---------------------------------------------------------------------------------

    def handle_request(self, hop: AnyFollowerHop) -> None:
        """Handle a follower's request."""
        error = self._refusal(hop)
        if error:
            self._answer(hop, hop.error_answer(error))
        elif isinstance(hop, FetchHop):
            self._serve(hop)
        elif isinstance(hop, OffsetForLeaderEpochHop):
            log, request = self._partition.log, hop.fetcher_request
            epoch, end_offset = log.epochs.end_offset_for(request.epoch, log.end_offset)
            self._answer(hop, EpochEnd(request.number, epoch, end_offset))

    def _answer(self, hop: AnyFollowerHop, answer: Answer) -> None:
        self._manager.answer(hop, answer)

    def _refusal(self, hop: AnyFollowerHop) -> int:
        partition = self._partition
        error = partition.check_leader_epoch(hop.fetcher_request.leader_epoch)
        if error:
            return error
        if partition.leader_id != hop.receiver:
            return _NOT_LEADER
        return 0 if hop.sender in partition.followers else _UNKNOWN_LEADER_EPOCH

    def _serve(self, hop: FetchHop) -> None:
        """Answer a fetch, or park it."""
        node_id, fetch = hop.sender, hop.fetcher_request
        divergence = self._divergence(fetch)
        if divergence is not None:
            self._answer(hop, divergence)
            return
        # The answer is read before the fetch counts: so does Kafka (Partition.readRecords).
        answer = self._read(hop)
        self._update_follower_fetch_state(node_id, fetch, hop.broker_epoch)
        if answer.records is not None:
            self._answer(hop, answer)
        elif node_id in self._partition.followers:
            self._parked[node_id] = _Parked(hop, self._runtime.now_ms())
            self._complete_parked()

    def _divergence(self, fetch: Fetch) -> Answer | None:
        """The response to a follower whose log diverges, or whose offset is out of range."""
        log = self._partition.log
        if fetch.last_epoch >= 0:
            epoch, end_offset = log.epochs.end_offset_for(fetch.last_epoch, log.end_offset)
            if end_offset == NO_OFFSET or fetch.offset < log.start_offset:
                return OutOfRange(fetch.number, log.start_offset, log.end_offset)
            if epoch < fetch.last_epoch or end_offset < fetch.offset:
                return Diverged(fetch.number, epoch, end_offset)
        if not log.start_offset <= fetch.offset <= log.end_offset:
            return OutOfRange(fetch.number, log.start_offset, log.end_offset)
        return None

    def _read(self, hop: FetchHop) -> Fetched:
        partition, fetch = self._partition, hop.fetcher_request
        log = partition.log
        records = None
        if not self._throttles(hop.sender):
            records = log.read_slice(fetch.offset, self._manager.fetch_limits.partition_bytes_max)
        if records is not None:
            quota = self._manager.quota("leader", partition.leader_id)
            quota.record(partition, records.batches.held_bytes, self._runtime.now_ms())
        return Fetched(fetch.number, records, partition.high_watermark, log.start_offset)

    def _throttles(self, node_id: int) -> bool:
        """Whether the leader is above its rate and lets this follower wait."""
        partition = self._partition
        quota = self._manager.quota("leader", partition.leader_id)
        return quota.throttles(partition, node_id, self._runtime.now_ms())

    def _update_follower_fetch_state(self, node_id: int, fetch: Fetch, broker_epoch: int) -> None:
        """Update a follower's state: it has every record below its fetch offset."""
        partition = self._partition
        state = partition.followers[node_id]
        low_watermark = partition.low_watermark
        end_offset, now_ms = partition.log.end_offset, self._runtime.now_ms()
        state.update_fetch_state(
            fetch.offset, fetch.log_start_offset, end_offset, now_ms, broker_epoch
        )
        self._maybe_expand_isr(state)
        self._manager.maybe_share_log(partition, node_id)
        advanced = partition.advance_high_watermark()
        if advanced or partition.low_watermark > low_watermark:
            partition.notify()

    # -- parked fetches ----------------------------------------------------------------------------

    def partition_changed(self, partition: Partition) -> None:
        """The partition's watcher: parked fetches may have records now."""
        if partition.deleted:
            self._manager.forget(partition)
            return
        if partition.high_watermark != self._emitted_high_watermark:
            former, moved = self._emitted_high_watermark, partition.high_watermark
            self._emitted_high_watermark = moved
            end_offset = partition.log.end_offset
            emit_watermark(self._runtime, partition, partition.leader_id, former, moved, end_offset)
        if self._parked:
            self._complete_parked()
        self._watch_lag()

    def _complete_parked(self) -> None:
        """Answer the parked fetches with new records. A new watermark alone waits."""
        if not self._parked:
            return
        partition = self._partition
        log = partition.log
        for node_id, (hop, _) in list(self._parked.items()):
            if (
                log.end_offset != hop.fetcher_request.offset
                and node_id in self._parked
                and not self._throttles(node_id)
            ):
                del self._parked[node_id]
                # The follower was at the log end until now.
                state = partition.followers.get(node_id)
                if state is not None:
                    state.caught_up_ms = self._runtime.now_ms()
                self._answer_parked(hop)
        if self._wait is None:
            dues = [
                self._due_ms(parked.arrived_ms)
                for parked in self._parked.values()
                if self._has_news(parked.hop)
            ]
            if dues:
                self._wait = self._runtime.timers.call_at(min(dues), self._end_wait)

    def _has_news(self, hop: FetchHop) -> bool:
        """Whether a parked follower lacks the leader's high watermark or log start, or records that
        a throttle withholds: it is answered when its wait is over.
        """
        partition, replica = self._partition, hop.replica
        return (
            partition.log.end_offset != hop.fetcher_request.offset
            or replica.high_watermark != partition.high_watermark
            or replica.log.start_offset < partition.log.start_offset
        )

    @property
    def _wait_ms(self) -> int:
        return max(self._configs.get_int("replica.fetch.wait.max.ms"), 1)

    def _due_ms(self, arrived_ms: int) -> int:
        """The end of the current wait. A parked follower stands for one that repeats its fetch."""
        wait_ms = self._wait_ms
        waited_ms = self._runtime.now_ms() - arrived_ms
        return arrived_ms + (waited_ms // wait_ms + 1) * wait_ms

    def _end_wait(self) -> None:
        self._wait = None
        now_ms = self._runtime.now_ms()
        wait_ms = self._wait_ms
        for node_id, (hop, arrived_ms) in list(self._parked.items()):
            if self._has_news(hop) and (now_ms - arrived_ms) // wait_ms >= 1:
                del self._parked[node_id]
                self._answer_parked(hop)
        self._complete_parked()

    def _answer_parked(self, hop: FetchHop) -> None:
        error, fetch = self._refusal(hop), hop.fetcher_request
        if error:
            self._answer(hop, hop.error_answer(error))
        else:
            self._answer(hop, self._divergence(fetch) or self._read(hop))

    # -- the ISR -----------------------------------------------------------------------------------

    def _maybe_expand_isr(self, state: FollowerState) -> None:
        partition = self._partition
        node_id, offset = state.node_id, state.fetched_offset
        if (
            node_id not in partition.isr
            and not partition.isr_in_flight
            and offset >= partition.high_watermark
            and offset >= partition.leader_epoch_start_offset
            and self._metadata.is_isr_eligible(partition, state)
        ):
            # Kafka sorts the ISR whenever the leader changes it.
            self._alter_partition(sorted((*partition.isr, node_id)), "caught_up")

    def _lagging(self) -> list[FollowerState]:
        """Members of the ISR below the log end offset, by their last fetches."""
        partition = self._partition
        end_offset = partition.log.end_offset
        return [
            state
            for node_id, state in partition.followers.items()
            if node_id in partition.isr and state.fetched_offset != end_offset
        ]

    def _watch_lag(self, not_before_ms: int = 0) -> None:
        """Check the ISR when the first lagging follower exceeds the maximum lag time."""
        if self._shrink is not None:
            return
        partition = self._partition
        if partition.leader_id == NO_LEADER or partition.isr_in_flight:
            return
        lagging = self._lagging()
        if lagging:
            lag_ms_max = self._configs.get_int("replica.lag.time.max.ms")
            due_ms = min(state.caught_up_ms for state in lagging) + lag_ms_max
            due_ms = max(due_ms, not_before_ms, self._runtime.now_ms())
            self._shrink = self._runtime.timers.call_at(due_ms, self._maybe_shrink_isr)

    def _maybe_shrink_isr(self) -> None:
        self._shrink = None
        partition = self._partition
        if not self._metadata.is_running(partition.leader_id):
            return
        now_ms = self._runtime.now_ms()
        lag_ms_max = self._configs.get_int("replica.lag.time.max.ms")
        end_offset = partition.log.end_offset
        late = [
            state.node_id
            for state in self._lagging()
            if not state.is_caught_up(end_offset, now_ms, lag_ms_max)
        ]
        if late and not partition.isr_in_flight:
            self._alter_partition(sorted(set(partition.isr) - set(late)), "lagging")
        self._watch_lag()

    def _alter_partition(self, isr: list[int], reason: str) -> None:
        """Request another ISR from the controller. Until the response the high watermark waits for
        the members of both (Partition.prepareIsrExpand, prepareIsrShrink).
        """
        partition = self._partition
        partition.isr_in_flight = isr
        request = AlterPartition(
            partition.leader_id,
            partition.key,
            partition.leader_epoch,
            partition.partition_epoch,
            isr,
            reason,
            {
                node_id: state.broker_epoch
                for node_id, state in partition.followers.items()
                if node_id in isr
            },
        )
        self._send_alter_partition(request)

    def _send_alter_partition(self, request: AlterPartition) -> None:
        self._requested, self._awaits_response = request, True
        answered = partial(self._handle_alter_partition_response, request)
        if not self._manager.alter_partition(self._partition, request, answered):
            self._requested = None

    def _handle_alter_partition_response(self, request: AlterPartition, error: ErrorCode) -> None:
        """Handle the controller's response, or its absence.

        Newer metadata, perhaps of this very request, may have replaced the ISR in flight. An error
        is ignored then.
        """
        partition = self._partition
        is_in_flight = partition.isr_in_flight is request.isr
        if self._requested is request:
            self._awaits_response = False
        if error is ErrorCode.NONE or self._closed or not is_in_flight:
            if self._requested is request:
                self._requested = None
            if is_in_flight:
                partition.isr_in_flight = ()
            if error is ErrorCode.NONE and not self._closed:
                self._watch_lag()
                self._share_with_parked()
            return
        reaction = reaction_to(error)
        if reaction is Reaction.RETRY:
            due_ms = self._runtime.now_ms() + RETRY_BACKOFF_MS
            self._retry = self._runtime.timers.call_at(due_ms, self._repeat_request)
        elif reaction is Reaction.REVERT_ISR:
            self._revert_isr()

    def _repeat_request(self) -> None:
        """Repeat the last request, unless newer metadata has replaced its ISR."""
        request = self._requested
        if request is None:
            return
        if self._partition.isr_in_flight is request.isr:
            self._send_alter_partition(request)
        else:
            self._requested = None

    def _revert_isr(self) -> None:
        """Revert to the former ISR. Followers request another with later fetches."""
        partition = self._partition
        self._requested, partition.isr_in_flight = None, ()
        if partition.advance_high_watermark():
            partition.notify()
        # Leaders check the ISR in intervals of half the maximum lag time.
        interval_ms = self._configs.get_int("replica.lag.time.max.ms") // 2
        self._watch_lag(self._runtime.now_ms() + interval_ms)
        if self._expand is None and set(self._parked) - set(partition.isr):
            due_ms = self._runtime.now_ms() + self._wait_ms
            self._expand = self._runtime.timers.call_at(due_ms, self._retry_expand)

    def _share_with_parked(self) -> None:
        """Share the log with parked followers that joined the ISR."""
        for node_id in list(self._parked):
            self._manager.maybe_share_log(self._partition, node_id)
            if node_id not in self._partition.followers:
                self._parked.pop(node_id, None)

    def _retry_expand(self) -> None:
        """Retry an expansion that the controller refused or did not answer."""
        self._expand = None
        self._expand_for_parked()
