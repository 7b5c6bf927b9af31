"""The leader's side of replication: it answers followers' fetches and keeps the ISR.

The leader serves a follower's fetch as it serves a consumer's, but up to its log end, and learns
from it how far the follower has come: that lets the ISR grow and the high watermark advance. A
fetch that finds nothing new is *parked* until there is something, or until the follower has waited
for `replica.fetch.wait.max.ms` to hear of a higher watermark. A follower that is not caught up for
`replica.lag.time.max.ms` leaves the ISR.

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
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication.alter_partition import AlterPartition
from mockbroker.core.replication.fetcher import (
    Answer,
    AskEpochEnd,
    Diverged,
    EpochEnd,
    Fetch,
    Fetched,
    OutOfRange,
    Question,
    Refused,
)
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.timers import Timer

_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN_LEADER_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)


class _Parked(NamedTuple):
    """A fetch that waits, with the replica that asked: a later one of its broker is another."""

    replica: Replica
    fetch: Fetch
    arrived_ms: int


class LeaderReplication:
    """What the leader of one partition does for followers that have a log of their own."""

    __slots__ = ("_cluster", "_parked", "_partition", "_shrink", "_told_high_watermark", "_wait")

    def __init__(self, cluster: Cluster, partition: Partition) -> None:
        self._cluster = cluster
        self._partition = partition
        self._parked: dict[int, _Parked] = {}
        self._shrink: Timer | None = None
        self._wait: Timer | None = None
        self._told_high_watermark = partition.high_watermark
        partition.watch(self)

    def close(self) -> None:
        """There are no such followers any more, or the leadership is gone."""
        self._partition.unwatch(self)
        for timer in (self._shrink, self._wait):
            if timer is not None:
                timer.cancel()
        self._shrink = self._wait = None
        self._refuse_parked()

    def reconcile(self) -> None:
        """The leadership, the ISR or the followers changed."""
        partition = self._partition
        self._refuse_parked()
        if partition.isr_in_flight and self._cluster.hears_controller(partition.leader_id):
            partition.isr_in_flight = ()  # it was asked for while nobody heard of it
        for node_id in list(self._parked):  # with its next fetch, which would say the same
            state = partition.followers.get(node_id)
            if state is not None and self._cluster.replication.can_fetch(partition, node_id):
                self._maybe_expand_isr(state)
        self._watch_lag()

    def _refuse_parked(self) -> None:
        """Send those away that wait under another epoch, or are no followers any more."""
        partition = self._partition
        for node_id, (replica, fetch, _) in list(self._parked.items()):
            error = self._refusal(node_id, fetch)
            if error:
                del self._parked[node_id]
                if node_id in partition.replicas:
                    self._answer(replica, Refused(fetch.number, error))

    # -- answering ---------------------------------------------------------------------------------

    def asked(self, replica: Replica, question: Question, broker_epoch: int) -> None:
        """A question has arrived from a follower whose process registered under `broker_epoch`."""
        error = self._refusal(replica.node_id, question)
        if error:
            self._answer(replica, Refused(question.number, error))
        elif isinstance(question, AskEpochEnd):
            log = self._partition.log
            epoch, end_offset = log.epochs.end_offset_for(question.epoch, log.end_offset)
            self._answer(replica, EpochEnd(question.number, epoch, end_offset))
        else:
            self._serve(replica, question, broker_epoch)

    def _answer(self, replica: Replica, answer: Answer) -> None:
        self._cluster.replication.answer(self._partition, replica, answer)

    def _refusal(self, node_id: int, question: Question) -> int:
        partition = self._partition
        error = partition.check_leader_epoch(question.leader_epoch)
        if error:
            return error
        if partition.leader_id != question.leader_id:
            return _NOT_LEADER
        return 0 if node_id in partition.followers else _UNKNOWN_LEADER_EPOCH

    def _serve(self, replica: Replica, fetch: Fetch, broker_epoch: int) -> None:
        """Answer a fetch that has just arrived, or park it."""
        node_id = replica.node_id
        astray = self._astray(fetch)
        if astray is not None:
            self._answer(replica, astray)
            return
        # The answer is read before the fetch counts: so does Kafka (Partition.readRecords).
        answer = self._read(fetch)
        self._note_fetch(node_id, fetch, broker_epoch)
        if answer.taken is not None:
            self._answer(replica, answer)
        elif node_id in self._partition.followers:
            self._parked[node_id] = _Parked(replica, fetch, self._cluster.now_ms())
            self._watch_parked()

    def _astray(self, fetch: Fetch) -> Answer | None:
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
        bytes_max = self._cluster.config_int("replica.fetch.max.bytes")
        taken = log.cut_out(fetch.offset, bytes_max)
        return Fetched(fetch.number, taken, partition.high_watermark, log.start_offset)

    def _note_fetch(self, node_id: int, fetch: Fetch, broker_epoch: int) -> None:
        """The follower has everything below the offset that it asks for."""
        partition = self._partition
        state = partition.followers[node_id]
        low_watermark = partition.low_watermark
        end_offset, now_ms = partition.log.end_offset, self._cluster.now_ms()
        state.fetched(fetch.offset, fetch.log_start_offset, end_offset, now_ms, broker_epoch)
        self._maybe_expand_isr(state)
        self._cluster.replication.maybe_share(partition, node_id)
        advanced = partition.advance_high_watermark()
        if advanced or partition.low_watermark > low_watermark:
            partition.notify()

    # -- parked fetches ----------------------------------------------------------------------------

    def partition_changed(self, partition: Partition) -> None:
        """The partition's watcher: parked fetches may have something to take."""
        if partition.deleted:
            self._cluster.replication.forget(partition)
            return
        if partition.high_watermark != self._told_high_watermark:
            former, self._told_high_watermark = self._told_high_watermark, partition.high_watermark
            self._tell_watermark(former)
        self._watch_parked()
        self._watch_lag()

    def _watch_parked(self) -> None:
        """Answer the parked fetches that have news; the news of a watermark alone can wait."""
        partition = self._partition
        log = partition.log
        for node_id, (replica, fetch, _) in list(self._parked.items()):
            if log.end_offset != fetch.offset and node_id in self._parked:
                del self._parked[node_id]
                # Until just now it was at the log's end, as one fetch after the other told.
                state = partition.followers.get(node_id)
                if state is not None:
                    state.caught_up_ms = self._cluster.now_ms()
                self._answer_parked(replica, fetch)
        if self._wait is None:
            dues = [
                self._due_ms(parked.arrived_ms)
                for parked in self._parked.values()
                if self._is_behind(parked.replica)
            ]
            if dues:
                self._wait = self._cluster.timers.call_at(min(dues), self._end_wait)

    def _is_behind(self, replica: Replica) -> bool:
        """Whether a parked follower has yet to hear of the leader's watermark or log start."""
        partition = self._partition
        return (
            replica.high_watermark != partition.high_watermark
            or replica.log.start_offset < partition.log.start_offset
        )

    def _due_ms(self, arrived_ms: int) -> int:
        """When the present wait of a follower ends that has asked again and again since."""
        wait_ms = max(self._cluster.config_int("replica.fetch.wait.max.ms"), 1)
        waited_ms = self._cluster.now_ms() - arrived_ms
        return arrived_ms + (waited_ms // wait_ms + 1) * wait_ms

    def _end_wait(self) -> None:
        self._wait = None
        now_ms = self._cluster.now_ms()
        wait_ms = max(self._cluster.config_int("replica.fetch.wait.max.ms"), 1)
        for node_id, (replica, fetch, arrived_ms) in list(self._parked.items()):
            if self._is_behind(replica) and (now_ms - arrived_ms) // wait_ms >= 1:
                del self._parked[node_id]
                self._answer_parked(replica, fetch)
        self._watch_parked()

    def _answer_parked(self, replica: Replica, fetch: Fetch) -> None:
        error = self._refusal(replica.node_id, fetch)
        if error:
            self._answer(replica, Refused(fetch.number, error))
        else:
            self._answer(replica, self._astray(fetch) or self._read(fetch))

    # -- the ISR -----------------------------------------------------------------------------------

    def _maybe_expand_isr(self, state: FollowerState) -> None:
        partition = self._partition
        node_id, offset = state.node_id, state.fetched_offset
        if (
            node_id not in partition.isr
            and not partition.isr_in_flight
            and offset >= partition.high_watermark
            and offset >= partition.leader_epoch_start_offset
            and self._cluster.replication.may_be_in_sync(partition, state)
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
            lag_ms_max = self._cluster.config_int("replica.lag.time.max.ms")
            due_ms = min(state.caught_up_ms for state in lagging) + lag_ms_max
            due_ms = max(due_ms, not_before_ms, self._cluster.now_ms())
            self._shrink = self._cluster.timers.call_at(due_ms, self._maybe_shrink_isr)

    def _maybe_shrink_isr(self) -> None:
        self._shrink = None
        partition = self._partition
        if not self._cluster.replication.is_running(partition.leader_id):
            return
        now_ms = self._cluster.now_ms()
        lag_ms_max = self._cluster.config_int("replica.lag.time.max.ms")
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
        )
        answered = partial(self._altered, request)
        self._cluster.replication.alter_partition(partition, request, answered)

    def _altered(self, request: AlterPartition, error: ErrorCode) -> None:
        """The controller has answered; or, with REQUEST_TIMED_OUT, it has not."""
        partition = self._partition
        if partition.isr_in_flight is request.isr:
            partition.isr_in_flight = ()
        if error is ErrorCode.NONE:
            self._watch_lag()
            return
        if partition.advance_high_watermark():
            partition.notify()
        # Leaders look for lagging followers in intervals of half the time that these may lag.
        interval_ms = self._cluster.config_int("replica.lag.time.max.ms") // 2
        self._watch_lag(self._cluster.now_ms() + interval_ms)

    # -- telling -----------------------------------------------------------------------------------

    def _tell_watermark(self, former: int) -> None:
        partition = self._partition
        if self._cluster.on_event:
            self._cluster.tell(
                WatermarkMoved(
                    self._cluster.now_ms(),
                    partition.topic.name,
                    partition.index,
                    partition.leader_id,
                    former,
                    partition.high_watermark,
                    partition.log.end_offset,
                )
            )
