"""Replication of one partition in the second gear: followers that fetch, and the leader they ask.

The leader serves a fetch as it serves a consumer's, up to its log end, and learns from it how far
the follower has come: that is what lets the ISR grow and the high watermark advance. A fetch that
finds nothing new is *parked* until there is something, or until the follower has waited for
`replica.fetch.wait.max.ms` to hear of a higher watermark. Who is not caught up for
`replica.lag.time.max.ms` leaves the ISR.

A follower that has caught up, and that nothing holds back any more, gives its copy up and shares
the leader's log again (the first gear).

Source: ReplicaManager.fetchMessages, Partition.updateFollowerFetchState, maybeShrinkIsr.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.events import FollowerFetched, LogTruncated, WatermarkMoved
from mockbroker.core.log.epoch_cache import NO_OFFSET
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication.elections import PartitionChange
from mockbroker.core.replication.fetcher import (
    Advanced,
    Answer,
    AskEpochEnd,
    Diverged,
    Effect,
    EpochEnd,
    Event,
    Fetch,
    Fetched,
    Follow,
    Halt,
    OutOfRange,
    Pause,
    Question,
    Refused,
    ReplicaFetcher,
    Truncated,
    Truncation,
    Woken,
)
from mockbroker.core.replication.network import Message
from mockbroker.core.replication.replica import Replica
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.timers import Timer

_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_UNKNOWN_LEADER_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)


class PartitionReplication:
    """The followers of one partition that have a copy of their own."""

    __slots__ = (
        "_cluster",
        "_fetchers",
        "_parked",
        "_partition",
        "_shrink",
        "_told_high_watermark",
        "_wait",
    )

    def __init__(self, cluster: Cluster, partition: Partition) -> None:
        self._cluster = cluster
        self._partition = partition
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._parked: dict[int, tuple[Fetch, int]] = {}  # with the time of their arrival
        self._shrink: Timer | None = None
        self._wait: Timer | None = None
        self._told_high_watermark = partition.high_watermark
        partition.watch(self)

    def close(self) -> None:
        """Nobody has a copy of their own any more."""
        self._partition.unwatch(self)
        for timer in (self._shrink, self._wait):
            if timer is not None:
                timer.cancel()
        self._shrink = self._wait = None
        self._parked.clear()
        self._fetchers.clear()

    # -- followers come and go ---------------------------------------------------------------------

    def reconcile(self) -> None:
        """Let each follower fetch that can, and stop the others."""
        partition = self._partition
        replication = self._cluster.replication
        for node_id in [n for n in self._fetchers if n not in partition.own_replicas]:
            del self._fetchers[node_id]
            self._parked.pop(node_id, None)
        for node_id, (fetch, _) in list(self._parked.items()):
            if fetch.leader_epoch != partition.leader_epoch:
                del self._parked[node_id]
        for node_id, replica in list(partition.own_replicas.items()):
            fetcher = self._fetchers.get(node_id)
            if fetcher is None or fetcher.replica is not replica:
                self._parked.pop(node_id, None)
                fetcher = self._fetchers[node_id] = ReplicaFetcher(
                    replica,
                    partition.topic.configs.roll_limits,
                    Truncation(self._cluster.config("mockbroker.replication.truncation")),
                )
            if replication.can_fetch(partition, node_id):
                self._handle(node_id, Follow(partition.leader_id, partition.leader_epoch))
            else:
                self._parked.pop(node_id, None)
                self._handle(node_id, Halt())
        self._watch_lag()

    def _handle(self, node_id: int, event: Event) -> None:
        """Put an event to a follower's machine, and do what that wants done."""
        fetcher = self._fetchers.get(node_id)
        if fetcher is not None:
            for effect in fetcher.handle(event, self._cluster.now_ms()):
                self._perform(node_id, effect)

    def _perform(self, node_id: int, effect: Effect) -> None:
        match effect:
            case Fetch() | AskEpochEnd():
                self._ask(node_id, effect)
            case Pause(number):
                backoff_ms = self._cluster.config_int("replica.fetch.backoff.ms")
                self._wake_after(node_id, number, backoff_ms)
            case Truncated(former, offset):
                self._tell_truncation(node_id, former, offset)
                self._partition.notify()
            case Advanced(former):
                replica = self._fetchers[node_id].replica
                self._tell_watermark(node_id, former, replica.high_watermark)
                self._partition.notify()

    def _wake_after(self, node_id: int, number: int, delay_ms: int) -> None:
        due_ms = self._cluster.now_ms() + delay_ms
        self._cluster.timers.call_at(due_ms, partial(self._handle, node_id, Woken(number)))

    def _ask(self, node_id: int, question: Question) -> None:
        if isinstance(question, Fetch):
            self._tell_fetch(node_id, question)
        message = self._message(node_id, question.leader_id, type(question).__name__)
        arrive = partial(self._asked, node_id, question)
        if not self._cluster.replication.network.send(message, arrive):
            timeout_ms = self._cluster.config_int("replica.socket.timeout.ms")
            self._wake_after(node_id, question.number, timeout_ms)

    def _answer(self, node_id: int, leader_id: int, answer: Answer) -> None:
        message = self._message(leader_id, node_id, type(answer).__name__)
        lag_ms = self._cluster.replication.lag_ms(self._partition, node_id)
        network = self._cluster.replication.network
        if not network.send(message, partial(self._handle, node_id, answer), lag_ms):
            timeout_ms = self._cluster.config_int("replica.socket.timeout.ms")
            self._wake_after(node_id, answer.number, timeout_ms)

    def _message(self, sender: int, receiver: int, what: str) -> Message:
        return Message(sender, receiver, what, self._partition.topic.name, self._partition.index)

    # -- the leader's side -------------------------------------------------------------------------

    def _asked(self, node_id: int, question: Question) -> None:
        """A follower's question has arrived at the broker it was sent to."""
        leader_id, number = question.leader_id, question.number
        if node_id not in self._fetchers or not self._cluster.replication.is_running(leader_id):
            return
        error = self._refusal(node_id, question)
        if error:
            self._answer(node_id, leader_id, Refused(number, error))
        elif isinstance(question, AskEpochEnd):
            log = self._partition.log
            epoch, end_offset = log.epochs.end_offset_for(question.epoch, log.end_offset)
            self._answer(node_id, leader_id, EpochEnd(number, epoch, end_offset))
        else:
            self._serve(node_id, question)

    def _refusal(self, node_id: int, question: Question) -> int:
        partition = self._partition
        error = partition.check_leader_epoch(question.leader_epoch)
        if error:
            return error
        if partition.leader_id != question.leader_id:
            return _NOT_LEADER
        return 0 if node_id in partition.own_replicas else _UNKNOWN_LEADER_EPOCH

    def _serve(self, node_id: int, fetch: Fetch) -> None:
        """Answer a fetch that has just arrived, or park it."""
        astray = self._astray(fetch)
        if astray is not None:
            self._answer(node_id, fetch.leader_id, astray)
            return
        # What is told is from before the fetch counts: so does Kafka (Partition.readRecords).
        answer = self._read(fetch)
        self._note_fetch(node_id, fetch)
        if answer.taken is not None:
            self._answer(node_id, fetch.leader_id, answer)
        elif node_id in self._fetchers:
            self._parked[node_id] = fetch, self._cluster.now_ms()
            self._watch_parked()

    def _astray(self, fetch: Fetch) -> Answer | None:
        """What a follower is told whose history is another, or who is out of the log's range."""
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

    def _note_fetch(self, node_id: int, fetch: Fetch) -> None:
        """The follower has everything below the offset that it asks for."""
        partition = self._partition
        replica = partition.own_replicas[node_id]
        log_end_offset = partition.log.end_offset
        low_watermark = partition.low_watermark
        now_ms = self._cluster.now_ms()
        replica.fetched(fetch.offset, fetch.log_start_offset, log_end_offset, now_ms)
        self._maybe_expand_isr(replica)
        if self._has_caught_up(replica):
            self._share(node_id)
        advanced = partition.advance_high_watermark()
        if advanced or partition.low_watermark > low_watermark:
            partition.notify()

    def _maybe_expand_isr(self, replica: Replica) -> None:
        partition = self._partition
        node_id, offset = replica.node_id, replica.fetched_offset
        if (
            node_id not in partition.isr
            and offset >= partition.high_watermark
            and offset >= partition.leader_epoch_start_offset
            and self._cluster.replication.may_be_in_sync(partition, node_id)
        ):
            change = PartitionChange(self._cluster, partition)
            # Whenever the leader changes the ISR, its members are put in order.
            change.isr = sorted((*change.isr, node_id))
            change.apply("caught up")

    # -- the way back to the first gear ------------------------------------------------------------

    def _has_caught_up(self, replica: Replica) -> bool:
        partition = self._partition
        end_offset = partition.log.end_offset
        return (
            partition.own_replicas.get(replica.node_id) is replica
            and replica.node_id in partition.isr
            and replica.fetched_offset == end_offset == replica.log.end_offset
            and not self._cluster.replication.needs_own_copy(partition, replica.node_id)
        )

    def _share(self, node_id: int) -> None:
        """Let a follower share the leader's log, and with it the high watermark, from now on."""
        del self._partition.own_replicas[node_id]
        del self._fetchers[node_id]
        self._parked.pop(node_id, None)
        self._cluster.replication.let_go(self._partition)

    # -- waiting -----------------------------------------------------------------------------------

    def partition_changed(self, partition: Partition) -> None:
        """The partition's watcher: parked fetches may have something to take."""
        if partition.deleted:
            self._cluster.replication.forget(partition)
            return
        if partition.high_watermark != self._told_high_watermark:
            former, self._told_high_watermark = self._told_high_watermark, partition.high_watermark
            self._tell_watermark(partition.leader_id, former, partition.high_watermark)
        self._watch_parked()
        self._watch_lag()

    def _watch_parked(self) -> None:
        """Answer the parked fetches that have news; the news of a watermark alone can wait."""
        partition = self._partition
        log = partition.log
        for node_id, (fetch, _) in list(self._parked.items()):
            if log.end_offset != fetch.offset and node_id in self._parked:
                del self._parked[node_id]
                # Until just now it was at the log's end, as one fetch after the other told.
                self._fetchers[node_id].replica.caught_up_ms = self._cluster.now_ms()
                self._answer_parked(node_id, fetch)
        if self._wait is None:
            dues = [
                self._due_ms(arrived_ms)
                for node_id, (_, arrived_ms) in self._parked.items()
                if self._is_behind(node_id)
            ]
            if dues:
                self._wait = self._cluster.timers.call_at(min(dues), self._end_wait)

    def _is_behind(self, node_id: int) -> bool:
        """Whether a parked follower has yet to hear of the leader's watermark or log start."""
        partition, replica = self._partition, self._fetchers[node_id].replica
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
        for node_id, (fetch, arrived_ms) in list(self._parked.items()):
            if self._is_behind(node_id) and (now_ms - arrived_ms) // wait_ms >= 1:
                del self._parked[node_id]
                self._answer_parked(node_id, fetch)
        self._watch_parked()

    def _answer_parked(self, node_id: int, fetch: Fetch) -> None:
        if self._refusal(node_id, fetch):
            return  # it is going to be stopped, or to follow another leader
        answer = self._astray(fetch) or self._read(fetch)
        self._answer(node_id, fetch.leader_id, answer)

    # -- shrinking the ISR -------------------------------------------------------------------------

    def _lagging(self) -> list[Replica]:
        """Members of the ISR that have not come to the log's end, as far as the leader knows."""
        partition = self._partition
        end_offset = partition.log.end_offset
        return [
            replica
            for node_id, replica in partition.own_replicas.items()
            if node_id in partition.isr and replica.fetched_offset != end_offset
        ]

    def _watch_lag(self) -> None:
        """Look again when the first of the lagging followers has lagged for too long."""
        if self._shrink is not None or self._partition.leader_id == NO_LEADER:
            return
        if not self._cluster.has_controller:
            return  # nobody would take a smaller ISR
        lagging = self._lagging()
        if lagging:
            lag_ms_max = self._cluster.config_int("replica.lag.time.max.ms")
            due_ms = min(replica.caught_up_ms for replica in lagging) + lag_ms_max
            due_ms = max(due_ms, self._cluster.now_ms())
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
            replica.node_id
            for replica in self._lagging()
            if not replica.is_caught_up(end_offset, now_ms, lag_ms_max)
        ]
        if late:
            change = PartitionChange(self._cluster, partition)
            change.isr = sorted(set(partition.isr) - set(late))
            change.apply("lagging")
        self._watch_lag()

    # -- telling -----------------------------------------------------------------------------------

    def _tell_fetch(self, node_id: int, fetch: Fetch) -> None:
        partition, config = self._partition, self._cluster.config_int
        self._cluster.tell(
            FollowerFetched(
                self._cluster.now_ms(),
                partition.topic.name,
                partition.index,
                node_id,
                fetch.leader_id,
                fetch.leader_epoch,
                fetch.offset,
                fetch.last_epoch,
                config("replica.fetch.wait.max.ms"),
                config("replica.fetch.min.bytes"),
                config("replica.fetch.response.max.bytes"),
                config("replica.fetch.max.bytes"),
            )
        )

    def _tell_watermark(self, node_id: int, former: int, high_watermark: int) -> None:
        if self._cluster.on_event and former != high_watermark:
            partition = self._partition
            replica = partition.replica(node_id)
            self._cluster.tell(
                WatermarkMoved(
                    self._cluster.now_ms(),
                    partition.topic.name,
                    partition.index,
                    node_id,
                    former,
                    high_watermark,
                    high_watermark if replica is None else replica.log.end_offset,
                )
            )

    def _tell_truncation(self, node_id: int, former: int, offset: int) -> None:
        partition = self._partition
        now_ms, topic = self._cluster.now_ms(), partition.topic.name
        self._cluster.tell(LogTruncated(now_ms, topic, partition.index, node_id, former, offset))
