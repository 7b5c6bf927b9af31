"""Reading the targets of one Fetch: the checks of each partition in Kafka's order, and the bytes.

The order decides which error a target with two faults gets (ReplicaManager.readFromLog,
Partition.fetchRecords): the topic, the replica, the leader epoch, leadership, the fetcher's own
history, the offset. Bytes are shared out in the order of the targets. Only the first that has any
may exceed the limits, by one batch (KIP-74).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.fetch_session import FetchContext, FetchTarget
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.partition import Partition
from mockbroker.core.replication.replica import Replica
from mockbroker.core.replication.replica_selector import preferred_replica
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

Answer = tuple[FetchTarget, PartitionData]


class FetchReader:
    """Reads the targets of one request, as often as it is asked to.

    After `read`, `must_answer` says whether the answers are to be sent now: there are enough bytes,
    or something happened that the fetcher should hear of.
    """

    __slots__ = (
        "_access",
        "_broker",
        "_by_id",
        "_bytes_max",
        "_bytes_min",
        "_cluster",
        "_from_consumer",
        "_incremental",
        "_log_dirs",
        "_node_id",
        "_only_leader",
        "_rack_id",
        "_read_committed",
        "_replica_id",
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
        self._incremental = context.session is not None
        self._targets = context.targets
        self._urgent = False
        self._access = (
            None if ctx.cluster.authorizer is None else _FetchAccess(ctx, self.from_follower)
        )
        self.hints = LeaderHints(ctx)
        self.must_answer = False

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> list[Answer]:
        """The answers, in the order of the targets; those about unknown topics come last.

        For an incremental fetch, targets without news are left out.
        """
        answers: list[Answer] = []
        unknown: list[Answer] = []
        remaining = self._bytes_max
        total = 0
        self._urgent = False
        incremental = self._incremental
        for target in self._targets.values():
            partition = self._resolve(target)
            if isinstance(partition, int):
                unknown.append((target, _unknown(target, partition)))
                continue
            data, size = self._read_one(target, partition, remaining, at_least_one=total == 0)
            if size:
                total += size
                remaining = remaining - size if size < remaining else 0
            elif incremental and not _has_news(target, data):
                continue
            answers.append((target, data))
        # Unknown topics alone do not end a wait, unless there is nothing else to wait for.
        self.must_answer = (
            self._urgent or total >= self._bytes_min or len(unknown) == len(self._targets)
        )
        if len(unknown) > 1:
            unknown.sort(key=_has_known_id)
        answers += unknown
        return answers

    def _resolve(self, target: FetchTarget) -> Partition | int:
        """The partition a target means, or the error code when there is none."""
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
                # The name is known from before; now it may belong to another topic.
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
        """The answer about one partition, and how many bytes it carries."""
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
        """The error code that comes before any look into the log, or 0."""
        node_id = self._node_id
        leads = partition.leader_id == node_id
        if not leads:
            if self._log_dirs.lost(partition):
                return _STORAGE_ERROR
            if node_id not in partition.replicas:
                return _NOT_LEADER
        if self._by_id and target.topic_id != partition.topic.topic_id:
            return _INCONSISTENT_TOPIC_ID
        epoch = target.request.current_leader_epoch
        # Any negative epoch counts as none here, while ListOffsets knows -1 alone.
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
        """No records, but real offsets: the fetcher is to go elsewhere or to truncate."""
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
            data.current_leader = LeaderIdAndEpoch(*self.hints.mention(partition))
        return data

    # -- waiting -----------------------------------------------------------------------------------

    def partitions(self) -> dict[Partition, FetchTarget]:
        """The partitions whose changes may end the wait, each with its target."""
        found = {}
        for target in self._targets.values():
            partition = self._resolve(target)
            if not isinstance(partition, int):
                found[partition] = target
        return found

    def ends_wait(self, changed: Partition, waiting: dict[Partition, FetchTarget]) -> bool:
        """Whether the wait is over now that `changed`, one of those waited for, has moved.

        Another leader alone does not end it: a fetcher that names no leader epoch, and may read
        from followers, goes on to wait at what is a follower now. One that does name it is fenced
        at once by a broker that follows; one that leads on under a higher epoch does not look
        before there is something to read (DelayedFetch.tryComplete, ReplicaManager.applyDelta).
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
        """Readable bytes from the fetch offset on, within the target's limit; -1 if truncated, or
        if the log's history is another one than the fetcher's.
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
            return 0
        return min(log.bytes_between(offset, upper), request.partition_max_bytes)

    # -- telling -----------------------------------------------------------------------------------

    def remember(self, answers: list[Answer]) -> None:
        """Note in the session's targets what the fetcher is told now.

        One that gets records goes to the end of the session, so that the others have their turn.
        """
        incremental = self._incremental
        for target, data in answers:
            target.high_watermark = -1 if data.error_code else data.high_watermark
            target.log_start_offset = data.log_start_offset
            if incremental and data.records:
                del self._targets[target.key]
                self._targets[target.key] = target


class _FetchAccess:
    """What the fetcher may read: judged once, so that a parked fetch ends as it began."""

    __slots__ = ("_judge", "_verdicts")

    def __init__(self, ctx: RequestContext, from_follower: bool) -> None:
        from mockbroker.handlers.authorization.access import Access
        from mockbroker.handlers.authorization.records import may_fetch

        self._judge = partial(may_fetch, Access(ctx), from_follower=from_follower)
        self._verdicts: dict[str, bool] = {}

    def allows(self, topic: str) -> bool:
        verdict = self._verdicts.get(topic)
        if verdict is None:
            verdict = self._verdicts[topic] = self._judge(topic)
        return verdict


def _aborted(log: ReplicaLog, offset: int, size: int) -> list[AbortedTransaction]:
    """The aborted transactions that a read_committed fetcher must know of to read these bytes."""
    if not size or not log.producers.aborted:
        return []
    found = log.producers.aborted_between(offset, log.offset_after(offset, size))
    return [AbortedTransaction(entry.producer_id, entry.first_offset) for entry in found]


def _unknown(target: FetchTarget, error: int) -> PartitionData:
    return PartitionData(target.request.partition, error, -1, records=b"")


def _has_known_id(answer: Answer) -> bool:
    """Those about ids that nobody has come first."""
    return answer[1].error_code != _UNKNOWN_TOPIC_ID


def _has_news(target: FetchTarget, data: PartitionData) -> bool:
    """Whether an incremental response has to mention a target that brings no records."""
    return (
        data.high_watermark != target.high_watermark
        or data.log_start_offset != target.log_start_offset
        or data.error_code != 0
        or data.preferred_read_replica >= 0
        or data.diverging_epoch.epoch != NO_EPOCH
    )
