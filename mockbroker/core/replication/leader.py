"""The leader's side of replication: it answers followers' fetches and keeps the ISR.

The leader serves a follower's fetch as it serves a consumer's, but up to its log end, and learns
from it how far the follower has come: that lets the ISR grow and the high watermark advance. A
fetch that finds nothing new is *parked* until there is something, or until the follower has waited
for `replica.fetch.wait.max.ms`; a higher watermark comes with it. A follower that is not caught up
for `replica.lag.time.max.ms` leaves the ISR.

The leader changes no ISR itself. It asks the controller with AlterPartition, and the answer may
take its time, be a refusal, or never come.

Source: ReplicaManager.fetchMessages, Partition.updateFollowerFetchState, maybeShrinkIsr,
maybeExpandIsr; AlterPartitionManager.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.events import WatermarkMoved
from mockbroker.core.log.epoch_cache import NO_OFFSET
from mockbroker.core.replication.alter_partition import AlterPartition
from mockbroker.core.replication.fetcher import (
    Answer,
    Diverged,
    EpochEnd,
    Fetch,
    Fetched,
    OutOfRange,
    Refused,
)
from mockbroker.core.replication.follower_hops import (
    AnyFollowerHop,
    FetchHop,
    OffsetForLeaderEpochHop,
)
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.replication.replica_manager import ReplicaManager
    from mockbroker.core.timing.timers import Timer


_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN_LEADER_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)


class _Parked(NamedTuple):
    """A fetch that waits."""

    hop: FetchHop
    arrived_ms: int


class LeaderReplication:
    """What the leader of one partition does for followers that have a log of their own."""

    __slots__ = (
        "_asked",
        "_closed",
        "_configs",
        "_emitted_high_watermark",
        "_expand",
        "_manager",
        "_metadata",
        "_parked",
        "_partition",
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
        self._asked: AlterPartition | None = None  # what the controller has not answered yet
        self._wait: Timer | None = None
        self._emitted_high_watermark = partition.high_watermark
        self._closed = False
        partition.watch(self)

    def close(self) -> None:
        """There are no such followers any more, or the leadership is gone."""
        self._closed = True
        self._partition.unwatch(self)
        for timer in (self._shrink, self._expand, self._wait):
            if timer is not None:
                timer.cancel()
        self._shrink = self._expand = self._wait = None
        self._refuse_parked()

    def reconcile(self) -> None:
        """The leadership, the ISR or the followers changed."""
        partition = self._partition
        self._refuse_parked()
        if (
            partition.isr_in_flight
            and (self._asked is None or partition.isr_in_flight is not self._asked.isr)
            and self._metadata.has_newest_image(partition.leader_id)
        ):
            partition.isr_in_flight = ()  # wanted while the controller was out of reach
        self._expand_for_parked()
        self._watch_lag()

    def _expand_for_parked(self) -> None:
        """Let those into the ISR that wait: their next fetches would say the same as the last."""
        partition = self._partition
        self._drop_abandoned()
        for node_id in list(self._parked):
            state = partition.followers.get(node_id)
            if state is not None and self._manager.can_fetch(partition, node_id):
                self._maybe_expand_isr(state)

    def _drop_abandoned(self) -> None:
        """Drop the fetches whose followers have stopped since."""
        for node_id, (hop, _) in list(self._parked.items()):
            fetcher = hop.replica.fetcher
            if fetcher is None or not fetcher.is_asking(hop.question.number):
                del self._parked[node_id]

    def _refuse_parked(self) -> None:
        """Refuse parked fetches of another epoch, or of brokers that are no followers any more."""
        partition = self._partition
        self._drop_abandoned()
        for node_id, (hop, _) in list(self._parked.items()):
            error = self._refusal(hop)
            if error:
                del self._parked[node_id]
                if node_id in partition.replicas:
                    self._answer(hop, Refused(hop.question.number, error))

    # -- answering ---------------------------------------------------------------------------------

    def asked(self, hop: AnyFollowerHop) -> None:
        """A question has arrived from a follower."""
        error = self._refusal(hop)
        if error:
            self._answer(hop, Refused(hop.question.number, error))
        elif isinstance(hop, FetchHop):
            self._serve(hop)
        elif isinstance(hop, OffsetForLeaderEpochHop):
            log, question = self._partition.log, hop.question
            epoch, end_offset = log.epochs.end_offset_for(question.epoch, log.end_offset)
            self._answer(hop, EpochEnd(question.number, epoch, end_offset))

    def _answer(self, hop: AnyFollowerHop, answer: Answer) -> None:
        self._manager.answer(hop, answer)

    def _refusal(self, hop: AnyFollowerHop) -> int:
        partition = self._partition
        error = partition.check_leader_epoch(hop.question.leader_epoch)
        if error:
            return error
        if partition.leader_id != hop.receiver:
            return _NOT_LEADER
        return 0 if hop.sender in partition.followers else _UNKNOWN_LEADER_EPOCH

    def _serve(self, hop: FetchHop) -> None:
        """Answer a fetch that has just arrived, or park it."""
        node_id, fetch = hop.sender, hop.question
        astray = self._divergence(fetch)
        if astray is not None:
            self._answer(hop, astray)
            return
        # The answer is read before the fetch counts: so does Kafka (Partition.readRecords).
        answer = self._read(fetch)
        self._update_follower_fetch_state(node_id, fetch, hop.broker_epoch)
        if answer.taken is not None:
            self._answer(hop, answer)
        elif node_id in self._partition.followers:
            self._parked[node_id] = _Parked(hop, self._runtime.now_ms())
            self._complete_parked()

    def _divergence(self, fetch: Fetch) -> Answer | None:
        """The answer to a follower whose history is another, or that is out of the log's range."""
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

    def _read(self, fetch: Fetch) -> Fetched:
        partition = self._partition
        log = partition.log
        taken = log.cut_out(fetch.offset, self._manager.fetch_limits.partition_bytes_max)
        return Fetched(fetch.number, taken, partition.high_watermark, log.start_offset)

    def _update_follower_fetch_state(self, node_id: int, fetch: Fetch, broker_epoch: int) -> None:
        """The follower has everything below the offset that it asks for."""
        partition = self._partition
        state = partition.followers[node_id]
        low_watermark = partition.low_watermark
        end_offset, now_ms = partition.log.end_offset, self._runtime.now_ms()
        state.fetched(fetch.offset, fetch.log_start_offset, end_offset, now_ms, broker_epoch)
        self._maybe_expand_isr(state)
        self._manager.maybe_share(partition, node_id)
        advanced = partition.advance_high_watermark()
        if advanced or partition.low_watermark > low_watermark:
            partition.notify()

    # -- parked fetches ----------------------------------------------------------------------------

    def partition_changed(self, partition: Partition) -> None:
        """The partition's watcher: parked fetches may have something to take."""
        if partition.deleted:
            self._manager.forget(partition)
            return
        if partition.high_watermark != self._emitted_high_watermark:
            former, self._emitted_high_watermark = (
                self._emitted_high_watermark,
                partition.high_watermark,
            )
            self._emit_watermark(former)
        self._complete_parked()
        self._watch_lag()

    def _complete_parked(self) -> None:
        """Answer the parked fetches that have news; the news of a watermark alone can wait."""
        partition = self._partition
        log = partition.log
        if not self._parked:
            return
        for node_id, (hop, _) in list(self._parked.items()):
            if log.end_offset != hop.question.offset and node_id in self._parked:
                del self._parked[node_id]
                # Until just now it was at the log's end.
                state = partition.followers.get(node_id)
                if state is not None:
                    state.caught_up_ms = self._runtime.now_ms()
                self._answer_parked(hop)
        if self._wait is None:
            dues = [
                self._due_ms(parked.arrived_ms)
                for parked in self._parked.values()
                if self._is_behind(parked.hop.replica)
            ]
            if dues:
                self._wait = self._runtime.timers.call_at(min(dues), self._end_wait)

    def _is_behind(self, replica: Replica) -> bool:
        """Whether a parked follower lacks the leader's high watermark or log start."""
        partition = self._partition
        return (
            replica.high_watermark != partition.high_watermark
            or replica.log.start_offset < partition.log.start_offset
        )

    def _due_ms(self, arrived_ms: int) -> int:
        """When the present wait of a follower ends that has asked again and again since."""
        wait_ms = max(self._configs.get_int("replica.fetch.wait.max.ms"), 1)
        waited_ms = self._runtime.now_ms() - arrived_ms
        return arrived_ms + (waited_ms // wait_ms + 1) * wait_ms

    def _end_wait(self) -> None:
        self._wait = None
        now_ms = self._runtime.now_ms()
        wait_ms = max(self._configs.get_int("replica.fetch.wait.max.ms"), 1)
        for node_id, (hop, arrived_ms) in list(self._parked.items()):
            if self._is_behind(hop.replica) and (now_ms - arrived_ms) // wait_ms >= 1:
                del self._parked[node_id]
                self._answer_parked(hop)
        self._complete_parked()

    def _answer_parked(self, hop: FetchHop) -> None:
        error, fetch = self._refusal(hop), hop.question
        if error:
            self._answer(hop, Refused(fetch.number, error))
        else:
            self._answer(hop, self._divergence(fetch) or self._read(fetch))

    # -- the ISR -----------------------------------------------------------------------------------

    def _maybe_expand_isr(self, state: FollowerState) -> None:
        partition = self._partition
        node_id, offset = state.node_id, state.fetched_offset
        if (
            node_id not in partition.isr
            and not partition.isr_in_flight
            and offset >= partition.high_watermark
            and offset >= partition.leader_epoch_start_offset
            and self._metadata.may_be_in_sync(partition, state)
        ):
            # Whenever the leader changes the ISR, its members are put in order.
            self._alter_partition(sorted((*partition.isr, node_id)), "caught up")

    def _lagging(self) -> list[FollowerState]:
        """Members of the ISR that have not come to the log's end, as far as the leader knows."""
        partition = self._partition
        end_offset = partition.log.end_offset
        return [
            state
            for node_id, state in partition.followers.items()
            if node_id in partition.isr and state.fetched_offset != end_offset
        ]

    def _watch_lag(self, not_before_ms: int = 0) -> None:
        """Look again when the first of the lagging followers has lagged for too long."""
        partition = self._partition
        if self._shrink is not None or partition.leader_id == NO_LEADER or partition.isr_in_flight:
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
        """Ask the controller for another ISR. Until it answers, the high watermark waits for the
        members of both (Partition.prepareIsrExpand, prepareIsrShrink).
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
        self._ask_controller(request)

    def _ask_controller(self, request: AlterPartition) -> None:
        self._asked = request
        answered = partial(self._altered, request)
        if not self._manager.alter_partition(self._partition, request, answered):
            self._asked = None

    def _altered(self, request: AlterPartition, error: ErrorCode) -> None:
        """The controller has answered. With REQUEST_TIMED_OUT it has not, and may still carry the
        request out: it is sent again, and the high watermark goes on waiting
        (NodeToControllerRequestThread).
        """
        partition = self._partition
        if error is ErrorCode.REQUEST_TIMED_OUT and not self._closed:
            if self._asked is request and partition.isr_in_flight is request.isr:
                self._ask_controller(request)
            return
        if self._asked is request:
            self._asked = None
        if partition.isr_in_flight is request.isr:
            partition.isr_in_flight = ()
        if self._closed:
            return
        if error is ErrorCode.NONE:
            self._watch_lag()
            self._share_with_parked()
            return
        if partition.advance_high_watermark():
            partition.notify()
        # Leaders look for lagging followers in intervals of half the time that these may lag.
        interval_ms = self._configs.get_int("replica.lag.time.max.ms") // 2
        self._watch_lag(self._runtime.now_ms() + interval_ms)
        if self._expand is None and set(self._parked) - set(partition.isr):
            wait_ms = max(self._configs.get_int("replica.fetch.wait.max.ms"), 1)
            due_ms = self._runtime.now_ms() + wait_ms
            self._expand = self._runtime.timers.call_at(due_ms, self._expand_again)

    def _share_with_parked(self) -> None:
        """Followers that were let into the ISR may wait at the log's end, and fetch no more."""
        for node_id in list(self._parked):
            self._manager.maybe_share(self._partition, node_id)
            if node_id not in self._partition.followers:
                self._parked.pop(node_id, None)

    def _expand_again(self) -> None:
        """Followers have fetched again since the controller refused them, or did not answer."""
        self._expand = None
        self._expand_for_parked()

    # -- telling -----------------------------------------------------------------------------------

    def _emit_watermark(self, former: int) -> None:
        partition = self._partition
        if self._runtime.on_event:
            self._runtime.emit(
                WatermarkMoved(
                    self._runtime.now_ms(),
                    partition.topic.name,
                    partition.index,
                    partition.leader_id,
                    former,
                    partition.high_watermark,
                    partition.log.end_offset,
                )
            )
