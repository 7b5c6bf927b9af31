"""Reads the partitions of one Fetch: their checks in Kafka's order, and their bytes.

The order decides which error a partition with two faults has (ReplicaManager.readFromLog,
Partition.fetchRecords): the topic, the replica, the leader epoch, leadership, divergence, the
offset. Partitions get bytes in order. Only the first one with records may exceed the limits, by one
batch (KIP-74). Of a session only the active targets are read (`core/fetching/fetch_session`).

A Fetch from beyond the readable offsets is answered at once, because the log may be truncated.
Since 4.0 the start of the batch with the offset decides (DelayedFetch.tryComplete, KAFKA-17803).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from mockbroker.core.fetching import fetch_session
from mockbroker.core.fetching.fetch_session import FetchContext, FetchTarget
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replica import Replica
from mockbroker.core.replication.replica_selector import is_rack_aware, preferred_replica
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper
from mockbroker.handlers.leader_hints import LeaderHints
from mockbroker.handlers.throttling import client_of
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext

REPLICA_STATE_SINCE = 15
FOLLOWER_FETCH_SINCE = 11
LEADER_HINTS_SINCE = 16
FUTURE_LOCAL_REPLICA = -3  # a copy being moved between log directories; never a client
READ_COMMITTED = 1
NO_EPOCH = -1

_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)
_OFFSET_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_FENCED_LEADER_EPOCH = int(ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN_LEADER_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)
_UNKNOWN_TOPIC_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
_INCONSISTENT_TOPIC_ID = int(ErrorCode.INCONSISTENT_TOPIC_ID)
_TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_HINTED = (_NOT_LEADER, _FENCED_LEADER_EPOCH)

FetchedPartition = tuple[FetchTarget, PartitionData]


class FetchReader:
    """Reads the partitions of one request, as often as `read` is called.

    After `read`, `must_answer` is True if the response is to be sent now: there are enough bytes,
    or a partition has an error, a diverging epoch or a preferred replica.
    """

    __slots__ = (
        "_access",
        "_broker",
        "_by_id",
        "_bytes_max",
        "_bytes_min",
        "_cluster",
        "_from_consumer",
        "_log_dirs",
        "_may_rest",
        "_node_id",
        "_only_leader",
        "_rack_id",
        "_read_committed",
        "_replica_id",
        "_session",
        "_targets",
        "_urgent",
        "_version",
        "from_follower",
        "hints",
        "must_answer",
    )

    def __init__(self, ctx: RequestContext, request: FetchRequest, context: FetchContext) -> None:
        version = self._version = ctx.header.api_version
        self._broker = ctx.broker
        self._cluster = ctx.cluster
        self._node_id = ctx.broker.node_id
        self._log_dirs = ctx.broker.log_dirs
        replica_id = self._replica_id = (
            request.replica_state.replica_id
            if version >= REPLICA_STATE_SINCE
            else request.replica_id
        )
        self.from_follower = replica_id >= 0
        self._from_consumer = replica_id < 0 and replica_id != FUTURE_LOCAL_REPLICA
        self._only_leader = self.from_follower or (
            self._from_consumer and version < FOLLOWER_FETCH_SINCE
        )
        self._read_committed = self._from_consumer and request.isolation_level == READ_COMMITTED
        self._rack_id = (
            request.rack_id if version >= FOLLOWER_FETCH_SINCE and not self.from_follower else ""
        )
        self._bytes_max = min(request.max_bytes, ctx.cluster.config_int("fetch.max.bytes"))
        throttling = ctx.cluster.quotas.throttling
        if throttling is not None and not self.from_follower:
            self._bytes_max = throttling.fetchable_bytes(client_of(ctx), self._bytes_max)
        self._bytes_min = min(request.min_bytes, self._bytes_max)
        self._by_id = context.by_id
        self._session = context.session
        self._targets = context.targets
        self._urgent = False
        self._access = (
            None
            if ctx.cluster.authorizer is None
            else _FetchAccess(ctx, from_follower=self.from_follower)
        )
        # What else decides over an answer has to change the partition, the image or the isolation
        # level. ACLs and the positions of followers in a rack do not.
        self._may_rest = (
            context.session is not None
            and len(context.targets) > fetch_session.RESTING_ABOVE
            and self._from_consumer
            and self._access is None
            and not (self._rack_id and is_rack_aware(ctx.cluster))
        )
        self.hints = LeaderHints(ctx)
        self.must_answer = False

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> list[FetchedPartition]:
        """The partitions in order; those of unknown topics come last.

        An incremental response leaves out unchanged partitions.
        """
        answers: list[FetchedPartition] = []
        unknown: list[FetchedPartition] = []
        remaining = self._bytes_max
        total = 0
        self._urgent = False
        session, may_rest = self._session, self._may_rest
        rested: list[tuple[FetchTarget, Partition]] = []
        for target in self._active_targets():
            partition = self._resolve(target)
            if isinstance(partition, int):
                unknown.append((target, _unknown(target, partition)))
                continue
            data, size = self._read_one(target, partition, remaining, at_least_one=total == 0)
            if size:
                total += size
                remaining = remaining - size if size < remaining else 0
            elif session is not None and not _has_news(target, data):
                if may_rest and self._is_at_rest(target, partition):
                    rested.append((target, partition))
                continue
            answers.append((target, data))
        for target, partition in rested:
            assert session is not None
            session.rest(target, partition)
        # Unknown topics end a wait only if all topics are unknown.
        self.must_answer = (
            self._urgent or total >= self._bytes_min or len(unknown) == len(self._targets)
        )
        if len(unknown) > 1:
            unknown.sort(key=_has_known_id)
        answers += unknown
        return answers

    def _active_targets(self) -> Collection[FetchTarget]:
        """The targets to look at: all without a session."""
        session = self._session
        if session is None:
            return self._targets.values()
        if not self._may_rest:
            session.wake_all()
            return self._targets.values()
        return session.active(read_committed=self._read_committed)

    def _is_at_rest(self, target: FetchTarget, partition: Partition) -> bool:
        """Whether only a change of the partition can give the target, which has no news, any.

        On the leader: a follower's own replica changes without a notification.
        """
        request, node_id = target.request, self._node_id
        return (
            partition.leader_id == node_id
            and node_id not in partition.own_replicas
            and request.last_fetched_epoch < 0
            and request.fetch_offset
            == (partition.last_stable_offset if self._read_committed else partition.high_watermark)
        )

    def _resolve(self, target: FetchTarget) -> Partition | int:
        """The partition of a target, or an error code."""
        image, access = self._broker.image, self._access
        if access is not None and self.from_follower and not access.allows(""):
            return _TOPIC_DENIED
        name = target.topic
        if self._by_id:
            topic = image.topics_by_id.get(target.topic_id)
            if topic is not None:
                target.topic = topic.name
            elif name is None:
                return _UNKNOWN_TOPIC_ID
            else:
                # The name is from the session; another topic may have it now.
                topic = image.topics.get(name)
        else:
            topic = image.topics.get(name or "")
        if access is not None and not self.from_follower:
            known = name or "" if topic is None else topic.name
            if not access.allows(known):
                return _TOPIC_DENIED
        index = target.request.partition
        if topic is None or not 0 <= index < len(topic.partitions):
            return _UNKNOWN_TOPIC_OR_PARTITION
        return topic.partitions[index]

    def _read_one(
        self, target: FetchTarget, partition: Partition, bytes_max: int, *, at_least_one: bool
    ) -> tuple[PartitionData, int]:
        """The response of one partition, and the size of its records."""
        error = self._refusal(target, partition)
        if error:
            return self._error(target, partition, error), 0
        request = target.request
        offset = request.fetch_offset
        replica: Replica | None = None
        log, high_watermark = partition.log, partition.high_watermark
        if partition.leader_id != self._node_id or partition.own_replicas:
            replica = partition.replica(self._node_id)
            assert replica is not None
            log, high_watermark = replica.log, replica.high_watermark
        if self._rack_id and partition.leader_id == self._node_id:
            preferred = preferred_replica(self._cluster, partition, self._rack_id, offset)
            if preferred >= 0:
                self._urgent = True
                return self._empty(target, partition, replica, preferred=preferred), 0
        if request.last_fetched_epoch >= 0:
            found, end = log.epochs.end_offset_for(request.last_fetched_epoch, log.end_offset)
            if end < 0 or offset < log.start_offset:
                return self._error(target, partition, _OFFSET_OUT_OF_RANGE), 0
            if found < request.last_fetched_epoch or end < offset:
                self._urgent = True
                diverging = EpochEndOffset(found, end)
                return self._empty(target, partition, replica, diverging=diverging), 0
        if not log.start_offset <= offset <= log.end_offset:
            return self._error(target, partition, _OFFSET_OUT_OF_RANGE), 0
        stable = partition.last_stable_offset_on(self._node_id)
        upper = self._upper_offset(log.end_offset, high_watermark, stable)
        records: list[memoryview] = []
        size = 0
        if offset < upper:
            bytes_max = min(bytes_max, request.partition_max_bytes)
            if bytes_max < 0:
                return self._error(target, partition, _UNKNOWN_SERVER_ERROR), 0
            records, size = log.read(offset, upper, bytes_max, at_least_one=at_least_one)
        elif offset > upper and log.batch_offset(offset) > upper:
            self._urgent = True
        return (
            PartitionData(
                request.partition,
                0,
                high_watermark,
                stable,
                log.start_offset,
                aborted_transactions=_aborted(log, offset, size) if self._read_committed else None,
                records=records or b"",
            ),
            size,
        )

    def _refusal(self, target: FetchTarget, partition: Partition) -> int:
        """The error code of the checks before the log is read, or 0."""
        node_id = self._node_id
        leads = partition.leader_id == node_id
        if not leads:
            if self._log_dirs.is_offline(partition):
                return _STORAGE_ERROR
            if node_id not in partition.replicas:
                return _NOT_LEADER
        if self._by_id and target.topic_id != partition.topic.topic_id:
            return _INCONSISTENT_TOPIC_ID
        epoch = target.request.current_leader_epoch
        # Any negative epoch is no epoch here; for ListOffsets only -1 is.
        if epoch >= 0 and epoch != partition.leader_epoch:
            return partition.check_leader_epoch(epoch)
        if not leads and self._only_leader:
            return _NOT_LEADER
        follower = self._replica_id
        if self.from_follower and (follower == node_id or follower not in partition.replicas):
            return _NOT_LEADER if epoch < 0 else _UNKNOWN_LEADER_EPOCH
        return 0

    def _upper_offset(self, log_end: int, high_watermark: int, stable: int) -> int:
        if not self._from_consumer:
            return log_end
        return stable if self._read_committed else high_watermark

    def _empty(
        self,
        target: FetchTarget,
        partition: Partition,
        replica: Replica | None,
        *,
        preferred: int = -1,
        diverging: EpochEndOffset | None = None,
    ) -> PartitionData:
        """No records, but offsets: the fetcher goes to another replica, or truncates."""
        log = partition.log if replica is None else replica.log
        high_watermark = partition.high_watermark if replica is None else replica.high_watermark
        data = PartitionData(
            target.request.partition,
            0,
            high_watermark,
            partition.last_stable_offset_on(self._node_id),
            log.start_offset,
            aborted_transactions=None,
            preferred_read_replica=preferred,
            records=b"",
        )
        if diverging is not None:
            data.diverging_epoch = diverging
        return data

    def _error(self, target: FetchTarget, partition: Partition, error: int) -> PartitionData:
        self._urgent = True
        data = PartitionData(
            target.request.partition, error, -1, aborted_transactions=None, records=b""
        )
        if error in _HINTED and self._version >= LEADER_HINTS_SINCE:
            data.current_leader = LeaderIdAndEpoch(*self.hints.add_leader(partition))
        return data

    # -- waiting -----------------------------------------------------------------------------------

    def partitions(self) -> dict[Partition, FetchTarget]:
        """The partitions to watch, each with its target; none on which a target rests."""
        found = {}
        for target in self._active_targets():
            partition = self._resolve(target)
            if not isinstance(partition, int):
                found[partition] = target
        return found

    def ends_wait(self, changed: Partition, waiting: dict[Partition, FetchTarget]) -> bool:
        """Whether a change of `changed`, one of the watched partitions, ends the wait.

        A change of the leader alone does not: a fetcher without a leader epoch, which may read from
        followers, continues to wait at the follower. A fetcher with a leader epoch is fenced at
        once by a follower; a leader with a higher epoch fences it once there is something to read
        (DelayedFetch.tryComplete, ReplicaManager.applyDelta).
        """
        target = waiting[changed]
        available = self._available(target.request, changed)
        error = self._refusal(target, changed)
        if error == _FENCED_LEADER_EPOCH and changed.leader_id == self._node_id:
            return available != 0
        if error or available < 0 or available >= self._bytes_min:
            return True
        if not available or self._bytes_min <= 1:
            return False
        for partition, target in waiting.items():
            if partition is not changed:
                available += max(self._available(target.request, partition), 0)
        return available >= self._bytes_min

    def _available(self, request: FetchPartition, partition: Partition) -> int:
        """Readable bytes from the fetch offset on, within the partition's limit; -1 if the offset
        is not readable or the fetcher's log diverges.
        """
        replica = partition.replica(self._node_id)
        if replica is None:
            return -1
        log = replica.log
        stable = partition.last_stable_offset_on(self._node_id)
        upper = self._upper_offset(log.end_offset, replica.high_watermark, stable)
        offset = request.fetch_offset
        if offset > log.end_offset or offset < log.start_offset:
            return -1
        if request.last_fetched_epoch >= 0:
            found, end = log.epochs.end_offset_for(request.last_fetched_epoch, log.end_offset)
            if found < request.last_fetched_epoch or end < offset:
                return -1
        if offset >= upper:
            return -1 if offset > upper and log.batch_offset(offset) > upper else 0
        return min(log.bytes_between(offset, upper), request.partition_max_bytes)

    # -- session -----------------------------------------------------------------------------------

    def update_session(self, answers: list[FetchedPartition]) -> None:
        """Store the sent offsets in the session.

        A partition with records moves to the end of the session, so that the others are read first.
        """
        session = self._session
        for target, data in answers:
            target.high_watermark = -1 if data.error_code else data.high_watermark
            target.log_start_offset = data.log_start_offset
            if session is None:
                continue
            if data.records:
                session.move_to_end(target)
            elif self._may_rest and not _has_news(target, data):
                partition = self._resolve(target)
                if not isinstance(partition, int) and self._is_at_rest(target, partition):
                    session.rest(target, partition)


class _FetchAccess:
    """The topics that the fetcher may read, checked once: a parked fetch completes with its first
    authorization.
    """

    __slots__ = ("_allowed", "_auth", "_from_follower")

    def __init__(self, ctx: RequestContext, *, from_follower: bool) -> None:
        self._auth = AuthHelper(ctx)
        self._from_follower = from_follower
        self._allowed: dict[str, bool] = {}

    def allows(self, topic: str) -> bool:
        """Whether the client may fetch from a topic; a follower may from all or from none."""
        allowed = self._allowed.get(topic)
        if allowed is None:
            allowed = self._allowed[topic] = (
                self._auth.cluster(AclOperation.CLUSTER_ACTION)
                if self._from_follower
                else self._auth.topic(AclOperation.READ, topic)
            )
        return allowed


def _aborted(log: ReplicaLog, offset: int, size: int) -> list[AbortedTransaction]:
    """The aborted transactions in these bytes, for a read_committed fetcher."""
    if not size or not log.producers.aborted:
        return []
    found = log.producers.aborted_between(offset, log.offset_after(offset, size))
    return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in found]


def _unknown(target: FetchTarget, error: int) -> PartitionData:
    return PartitionData(target.request.partition, error, -1, records=b"")


def _has_known_id(answer: FetchedPartition) -> bool:
    """The sort key of unknown topics: unknown ids come first."""
    return answer[1].error_code != _UNKNOWN_TOPIC_ID


def _has_news(target: FetchTarget, data: PartitionData) -> bool:
    """Whether an incremental response has a partition without records."""
    return (
        data.high_watermark != target.high_watermark
        or data.log_start_offset != target.log_start_offset
        or data.error_code != 0
        or data.preferred_read_replica >= 0
        or data.diverging_epoch.epoch != NO_EPOCH
    )
