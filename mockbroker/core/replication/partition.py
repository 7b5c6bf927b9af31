"""One partition as its leader has it: log and watermarks, the ISR by the leader's image, and the
states of its followers.

Nouns: a *replica* is one broker's copy, with a log of its own. The *high watermark* (HW) is the
smallest log end offset in the ISR, and the limit for consumers; the *last stable offset* (LSO) is
the first offset of an open transaction below it, or the high watermark. A *watcher* is notified
when one of them moves, the leader changes, or the log is truncated: a delayed Fetch or Produce is
then tried again. A fetch session that *rests* on a partition is woken by the next such change.

All brokers whose images agree on a partition share one object. The object follows the leader: when
the controller changes a partition whose leader it cannot reach, the newest image gets a copy, and
the leader keeps its object. A copy without its leader has no follower states, and its watermarks
stand still.

Followers that are caught up share the leader's log by reference. A follower that lags or diverges
has a replica of its own in `own_replicas`, and a state in `followers`. The leader's log end is
therefore not always the high watermark.

Source: kafka.cluster.Partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from mockbroker.core.events import TRUNCATION
from mockbroker.core.log.emitters import (
    emit_divergence,
    emit_expired,
    emit_removed,
    emit_watermark,
)
from mockbroker.core.log.producer_state import BatchMetadata
from mockbroker.core.log.record_errors import BatchRefusal
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.log.validation import RECORD_LIST_TOO_LARGE, validate_batch
from mockbroker.core.log.verification import VerificationGuard
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, split_batches
from mockbroker_protocol.records.batch import CONTROL_MASK, TRANSACTIONAL_MASK, Buffer

if TYPE_CHECKING:
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.replication.partition_host import PartitionHost

PartitionKey: TypeAlias = tuple[bytes, int]  # topic id, index

NO_LEADER = -1
NO_EPOCH = -1
ACKS_ALL = -1
PRODUCER_EXPIRATION = "producer.id.expiration.ms"
EXPIRATION_INTERVAL = "producer.id.expiration.check.interval.ms"

_NONE = 0
_NO_ISR: Sequence[int] = ()
_NOT_ENOUGH_REPLICAS = int(ErrorCode.NOT_ENOUGH_REPLICAS)
_OFFSET_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_POLICY_VIOLATION = int(ErrorCode.POLICY_VIOLATION)
_FENCED_LEADER_EPOCH = int(ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN_LEADER_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)


class Watcher(Protocol):
    """An observer of a partition's changes."""

    def partition_changed(self, partition: Partition) -> None:
        """HW, LSO or leader changed, or the log was truncated or deleted. May unwatch."""


class Resting(Protocol):
    """A fetch session with a target that need not be looked at until the partition changes."""

    def wake(self, partition: Partition) -> None:
        """The partition changed. Calls `remove_resting`."""


class AppendResult(msgspec.Struct, frozen=True, gc=False):
    """The result of an append; the fields of a produce response.

    `base_offset` and `last_offset` of a duplicate are those of the first attempt. Offsets and times
    that do not apply are -1.
    """

    error: int = _NONE
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    refusal: BatchRefusal | None = None
    duplicate: bool = False


class Partition:
    """One partition, shared by all brokers whose images agree. `leader_id` is -1 without a leader.

    `isr_in_flight` is the ISR of an AlterPartition without an answer; empty without one.
    """

    __slots__ = (
        "_host",
        "_loss",
        "_resting",
        "_watchers",
        "deleted",
        "elr",
        "followers",
        "high_watermark",
        "high_watermark_limit",
        "index",
        "isr",
        "isr_in_flight",
        "key",
        "last_known_elr",
        "last_stable_offset",
        "last_stable_offset_limit",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log",
        "maintenance_scheduled",
        "own_replicas",
        "partition_epoch",
        "replicas",
        "topic",
    )

    def __init__(
        self,
        *,
        topic: Topic,
        index: int,
        replicas: list[int],
        isr: list[int],
        leader_id: int,
        leader_epoch: int,
        host: PartitionHost,
    ) -> None:
        self.topic = topic
        self.index = index
        self.key: PartitionKey = (topic.topic_id, index)  # equal in all objects of this partition
        self.replicas = replicas
        self.isr = isr
        self.isr_in_flight = _NO_ISR
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = 0  # grows with every change by the controller
        # Eligible leaders outside the ISR, and the last known leader (KIP-966); see `elections`.
        self.elr: tuple[int, ...] = ()
        self.last_known_elr: tuple[int, ...] = ()
        self.leader_epoch_start_offset = 0
        self.log = ReplicaLog()
        if leader_epoch >= 0:  # a partition has no epoch before its first leader
            self.log.epochs.assign(leader_epoch, 0)
        self.high_watermark = 0
        self.high_watermark_limit: int | None = None  # set by a rule
        self.last_stable_offset_limit: int | None = None  # set by a rule
        self.last_stable_offset = 0
        self.own_replicas: dict[int, Replica] = {}
        self.followers: dict[int, FollowerState] = {}
        self.deleted = False
        self.maintenance_scheduled = False  # the log manager visits the log in its next round
        self._host = host
        self._loss = TRUNCATION
        self._resting: dict[Resting, None] | None = None
        self._watchers: dict[Watcher, None] = {}

    def __repr__(self) -> str:
        return f"Partition({self.topic.name}-{self.index})"

    # -- offsets and replicas ----------------------------------------------------------------------

    @property
    def log_start_offset(self) -> int:
        return self.log.start_offset

    @property
    def log_end_offset(self) -> int:
        """The leader's log end offset, which may be above the high watermark."""
        return self.log.end_offset

    @property
    def under_min_isr(self) -> bool:
        """Whether fewer replicas are in sync than min.insync.replicas requires, or than exist if
        that is less (KIP-966).
        """
        count = len(self.isr)
        return count < self.topic.configs.min_insync_replicas and count < len(self.replicas)

    def replica(self, node_id: int) -> Replica | None:
        """The copy on broker `node_id`; None if it has none."""
        if node_id not in self.replicas:
            return None
        own = self.own_replicas.get(node_id)
        return Replica(node_id, self.log, self.high_watermark) if own is None else own

    def last_stable_offset_on(self, node_id: int) -> int:
        """The limit of a read_committed consumer on one of the replicas' brokers."""
        own = self.own_replicas.get(node_id)
        if own is None:
            return self.last_stable_offset
        stable, limit = own.last_stable_offset, self.last_stable_offset_limit
        return stable if limit is None else max(min(stable, limit), own.log.start_offset)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the replicas on live brokers. DeleteRecords waits for
        it.
        """
        lowest = self.log.start_offset
        for node_id, state in self.followers.items():
            start = state.fetched_log_start
            if start < lowest and self._host.metadata.is_alive(self, node_id):
                lowest = start
        return lowest

    def check_leader_epoch(self, leader_epoch: int) -> int:
        """The error for a request's current leader epoch: 74, 75 or 0; -1 is not checked."""
        if leader_epoch in (NO_EPOCH, self.leader_epoch):
            return _NONE
        return _FENCED_LEADER_EPOCH if leader_epoch < self.leader_epoch else _UNKNOWN_LEADER_EPOCH

    # -- appending ---------------------------------------------------------------------------------

    def append(
        self,
        batch: memoryview,
        header: BatchHeader,
        acks: int,
        now_ms: int,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Append one batch of a client, as the leader; the checks have Kafka's order.

        `batch` is one whole batch of format v2 and `header` its header. Without a `guard` a
        transactional batch is appended unverified. The caller calls `notify` once it has appended
        all batches of a request.
        """
        log = self.log
        if acks == ACKS_ALL and self.under_min_isr:
            return AppendResult(_NOT_ENOUGH_REPLICAS, log_start_offset=log.start_offset)
        if batch.readonly:
            batch = memoryview(bytearray(batch))
        topic = self.topic
        configs = topic.configs
        valid = validate_batch(
            batch,
            header,
            configs,
            now_ms,
            topic_partition=(topic.name, self.index),
            walk_always=self._host.walks_all_records,
            limits=self._host.batch_limits,
        )
        if isinstance(valid, BatchRefusal):
            return self._refused(valid)
        if len(valid) > configs.roll_limits.segment_bytes:
            return self._refused(RECORD_LIST_TOO_LARGE)
        if header.producer_id >= 0:
            refused = self._check_producer(header, now_ms, guard)
            if refused is not None:
                return refused
        return self._write(valid, header, now_ms, now_ms if configs.log_append_time else -1)

    def _refused(self, refusal: BatchRefusal) -> AppendResult:
        if refusal.limit is not None:
            self._host.runtime.limits_exceeded[refusal.limit] += 1
        log_start = self.log.start_offset if refusal.has_log_start_offset else -1
        return AppendResult(refusal.error, log_start_offset=log_start, refusal=refusal)

    def _check_producer(
        self, header: BatchHeader, now_ms: int, guard: VerificationGuard | None
    ) -> AppendResult | None:
        """The answer to a retry, or an error of the producer's epoch or sequence; None if valid."""
        log = self.log
        producers = log.producers
        if now_ms >= producers.next_check_ms:
            self.expire_producers(log, now_ms)
        producer_id, epoch, sequence = (
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        )
        retry = producers.find_duplicate(producer_id, epoch, sequence, header.last_sequence)
        if retry is not None:
            return AppendResult(
                _NONE,
                retry.base_offset,
                retry.last_offset,
                retry.timestamp,
                log.start_offset,
                duplicate=True,
            )
        transactional = bool(header.attributes & TRANSACTIONAL_MASK)
        error = _NONE
        if transactional and guard is not None:
            error = producers.check_guard(producer_id, epoch, guard)
        error = error or producers.check(producer_id, epoch, sequence, transactional)
        return AppendResult(error, log_start_offset=log.start_offset) if error else None

    def expire_producers(self, log: ReplicaLog, now_ms: int) -> None:
        """Remove expired producers from a replica's log; called when its next check is due."""
        config = self._host.configs.get_int
        expired = log.producers.expire(
            now_ms, config(PRODUCER_EXPIRATION), config(EXPIRATION_INTERVAL)
        )
        if expired and log is self.log:
            emit_expired(self._host.runtime, self, expired)

    def _write(
        self, batch: memoryview, header: BatchHeader, now_ms: int, append_time_ms: int
    ) -> AppendResult:
        log = self.log
        delta = header.last_offset_delta
        timestamp = header.max_timestamp
        log.maybe_roll(len(batch), timestamp, now_ms, self.topic.configs.roll_limits)
        base_offset = log.append(batch, delta, timestamp, self.leader_epoch)
        last_offset = base_offset + delta
        if header.attributes & CONTROL_MASK:
            log.producers.replay(batch)
        elif header.producer_id >= 0:
            log.producers.append(
                header.producer_id,
                header.producer_epoch,
                BatchMetadata(
                    header.base_sequence, header.last_sequence, base_offset, last_offset, timestamp
                ),
                bool(header.attributes & TRANSACTIONAL_MASK),
            )
        self.advance_high_watermark()
        return AppendResult(_NONE, base_offset, last_offset, append_time_ms, log.start_offset)

    def append_records(self, batches: Buffer, now_ms: int, acks: int = ACKS_ALL) -> AppendResult:
        """Append batches of the broker itself (offset commits, markers).

        They are not validated. The result has the first base offset and the last offset. With
        acks=all the error is NOT_ENOUGH_REPLICAS if the ISR is too small. Watchers are notified.
        """
        if acks == ACKS_ALL and self.under_min_isr:
            return AppendResult(_NOT_ENOUGH_REPLICAS, log_start_offset=self.log.start_offset)
        first = last = -1
        for header, batch in split_batches(bytearray(batches)):
            written = self._write(batch, header, now_ms, -1)
            first = written.base_offset if first < 0 else first
            last = written.last_offset
        self.notify()
        return AppendResult(_NONE, first, last, -1, self.log.start_offset)

    # -- watermarks --------------------------------------------------------------------------------

    def advance_high_watermark(self) -> bool:
        """Raise the high watermark to the smallest log end offset of the ISR; False if it stays.

        It stays while the ISR is smaller than min.insync.replicas. It also waits for followers
        about to join the ISR: those of a requested expansion, and those that are caught up and
        eligible. Otherwise a follower behind a slow link would never reach the high watermark, and
        never join (Partition.maybeIncrementLeaderHW).
        """
        if self.under_min_isr:
            return False
        log = self.log
        offset = log.end_offset
        if self.followers:
            for node_id, state in self.followers.items():
                if state.fetched_offset < offset and self._should_wait_for(node_id, state):
                    offset = state.fetched_offset
        if self.high_watermark_limit is not None:
            offset = min(offset, self.high_watermark_limit)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        log.producers.high_watermark_moved(offset)
        self._refresh_last_stable_offset()
        return True

    def _should_wait_for(self, node_id: int, state: FollowerState) -> bool:
        """Whether the high watermark must not pass a follower's log end."""
        if node_id in self.isr or node_id in self.isr_in_flight:
            return True
        host = self._host
        lag_ms_max = host.configs.get_int("replica.lag.time.max.ms")
        return state.is_caught_up(
            self.log.end_offset, host.runtime.now_ms(), lag_ms_max
        ) and host.metadata.is_isr_eligible(self, state)

    def force_high_watermark(self, offset: int) -> None:
        """Set the high watermark to any offset of the log, also a lower one. Watchers are
        notified.
        """
        runtime, log = self._host.runtime, self.log
        former, end_offset = self.high_watermark, log.end_offset
        emit_watermark(runtime, self, self.leader_id, former, offset, end_offset, runtime.cause)
        log.high_watermark_moved(former, offset)
        self.set_leader_log(log, offset)
        self.notify()

    def _refresh_last_stable_offset(self) -> None:
        stable = self.log.last_stable_offset(self.high_watermark)
        limit = self.last_stable_offset_limit
        if limit is not None:
            stable = max(min(stable, limit), self.log.start_offset)
        self.last_stable_offset = stable

    def limit_last_stable_offset(self, limit: int | None) -> None:
        """Hold the last stable offset at `limit`; None removes the limit. Watchers are notified."""
        self.last_stable_offset_limit = limit
        self._refresh_last_stable_offset()
        self.notify()

    def delete_records(self, offset: int) -> tuple[int, int]:
        """Move the log start to `offset` (-1: the high watermark); returns the error and the
        offset.

        The checks are those of Partition.deleteRecordsOnLeader. Watchers are notified.
        """
        if "delete" not in self.topic.configs.cleanup_policy:
            return _POLICY_VIOLATION, -1
        if offset == -1:
            offset = self.high_watermark
        if offset < 0 or offset > self.high_watermark:
            return _OFFSET_OUT_OF_RANGE, -1
        former = self.log.start_offset
        if self.log.move_start(offset):
            emit_removed(self._host.runtime, self, former, offset - 1, "delete_records")
            self.log_start_moved()
        return _NONE, offset

    # -- leadership and life -----------------------------------------------------------------------

    def become_leader(
        self, leader_id: int, leader_epoch: int, isr: list[int], loss: str = TRUNCATION
    ) -> None:
        """Make `leader_id` (-1: none) the leader, under a higher epoch, with this ISR.

        A broker that cannot reach the controller leads once it gets the image (`begin_epoch`).
        `loss` is the reason for which records of the former log are lost then.
        """
        new_leader = leader_id != self.leader_id
        if self._loss == TRUNCATION:  # of an election without an image for the leader, too
            self._loss = loss
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr = isr
        self.isr_in_flight = _NO_ISR
        if leader_id == NO_LEADER:
            self.followers.clear()
        elif self._host.metadata.has_newest_image(leader_id):
            self.begin_epoch(new_leader=new_leader)
        else:
            self.followers.clear()
        self.notify()

    def begin_epoch(self, *, new_leader: bool) -> None:
        """Begin the leader's epoch at its log end.

        The log of a new leader becomes the partition's; replicas that shared the former log keep a
        copy.
        """
        leader_id = self.leader_id
        if leader_id in self.own_replicas:
            self._switch_log(leader_id)
        self._loss = TRUNCATION
        if new_leader:
            now_ms = self._host.runtime.now_ms()
            self.followers = {
                node_id: FollowerState.reset(node_id, in_sync=node_id in self.isr, now_ms=now_ms)
                for node_id in self.own_replicas
            }
        self.leader_epoch_start_offset = self.log.end_offset
        self.log.epochs.assign(self.leader_epoch, self.log.end_offset)
        self.advance_high_watermark()

    def _switch_log(self, leader_id: int) -> None:
        """Make `leader_id`'s log the partition's; replicas that shared the former log keep a
        copy.
        """
        own = self.own_replicas.pop(leader_id)
        for node_id in self.replicas:
            if node_id != leader_id and node_id not in self.own_replicas:
                copy = Replica(node_id, self.log.fork(), self.high_watermark)
                self.own_replicas[node_id] = copy
        former = self.log
        self.set_leader_log(own.log, own.high_watermark)
        emit_divergence(self._host.runtime, self, former, self._loss)

    def set_leader_log(self, log: ReplicaLog, high_watermark: int) -> None:
        """Make `log` the leader's log."""
        self.log = log
        self.high_watermark = high_watermark
        log.producers.high_watermark_moved(high_watermark)
        self._refresh_last_stable_offset()

    def raise_partition_epoch(self, by: int = 1) -> None:
        """Note that the controller has changed the partition.

        This replaces an ISR in flight: its request is refused, and the leader sends another one
        (Partition.updateAssignmentAndIsr).
        """
        self.partition_epoch += by
        self.isr_in_flight = _NO_ISR

    def set_isr(self, isr: list[int]) -> None:
        """Replace the ISR; a smaller one may let the high watermark move."""
        self.isr = isr
        if self._host.metadata.is_leader_object(self):
            self.advance_high_watermark()
        self.notify()

    # -- images that differ ------------------------------------------------------------------------

    def copy_with(self, own_replicas: dict[int, Replica]) -> Partition:
        """A copy of the partition for another image, with the replicas of that image.

        Both objects share the leader's log.
        """
        other = Partition(
            topic=self.topic,
            index=self.index,
            replicas=list(self.replicas),
            isr=list(self.isr),
            leader_id=self.leader_id,
            leader_epoch=self.leader_epoch,
            host=self._host,
        )
        other.partition_epoch = self.partition_epoch
        other._loss = self._loss
        other.elr, other.last_known_elr = self.elr, self.last_known_elr
        other.leader_epoch_start_offset = self.leader_epoch_start_offset
        other.log, other.high_watermark = self.log, self.high_watermark
        other.high_watermark_limit = self.high_watermark_limit
        other.last_stable_offset = self.last_stable_offset
        other.last_stable_offset_limit = self.last_stable_offset_limit
        other.own_replicas = own_replicas
        return other

    def copy_metadata_from(self, newer: Partition) -> None:
        """Take leader, replicas and ISR from another object of this partition."""
        self.replicas, self.isr, self.isr_in_flight = newer.replicas, newer.isr, _NO_ISR
        self.leader_id, self.leader_epoch = newer.leader_id, newer.leader_epoch
        self.partition_epoch = newer.partition_epoch
        self.elr, self.last_known_elr = newer.elr, newer.last_known_elr

    def truncate(self, offset: int) -> None:
        """Cut the log back to `offset`; watermarks follow."""
        if self.log.truncate(offset):
            self.set_leader_log(self.log, min(self.high_watermark, self.log.end_offset))
            self.notify()

    def delete(self) -> None:
        """Delete the partition with its topic: delayed operations complete."""
        self.deleted = True
        self.maintenance_scheduled = True  # a deleted log needs no maintenance
        self.notify()

    # -- watching ----------------------------------------------------------------------------------

    def watch(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def add_resting(self, session: Resting) -> None:
        if self._resting is None:
            self._resting = {session: None}
        else:
            self._resting[session] = None

    def remove_resting(self, session: Resting) -> None:
        if self._resting is not None:
            self._resting.pop(session, None)

    def wake_resting(self) -> None:
        """Let all sessions look at the partition again.

        If several partitions change together, all of this comes before the first notification:
        its watcher may read the others too.
        """
        if self._resting:
            resting, self._resting = self._resting, None
            for session in resting:
                session.wake(self)

    def log_start_moved(self) -> None:
        """Handle a new log start offset: watchers are notified."""
        self._refresh_last_stable_offset()
        self.notify()

    @property
    def has_watchers(self) -> bool:
        return bool(self._watchers)

    def notify(self) -> None:
        """Notify the sessions that rest, the watchers, the log manager and the recorder of a
        change.
        """
        host = self._host
        if not self.maintenance_scheduled:
            host.log_manager.schedule(self)
        if host.recorder is not None:
            host.recorder.partition_changed(self)
        self.wake_resting()
        if self._watchers:
            for watcher in list(self._watchers):
                watcher.partition_changed(self)
