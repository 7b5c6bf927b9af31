"""Reads and acquires the partitions of one ShareFetch.

A share partition can be fetched if it is active, and has room for records or Available ones. The
fetch may have `max_bytes` in all; the partitions that can be fetched share them equally. Only the
first one with records may exceed its part, by one batch (KIP-74).

The bytes that a fetch waits for are counted from the next fetch offset on, as if all of them could
be acquired.

Source: DelayedShareFetch, ShareFetchUtils, PartitionMaxBytesStrategy, PartitionRotateStrategy.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.share.acquisition import AcquireRequest, acquire
from mockbroker.core.share.configs import ShareGroupConfigs
from mockbroker.core.share.offset_reset import earliest_offset
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.sessions import ShareTarget
from mockbroker.core.share.states import AcquireMode
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE
from mockbroker.handlers.throttling import client_of
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.share_fetch import PartitionData, ShareFetchRequest

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.handlers.base import RequestContext

ShareFetched = tuple[ShareTarget, PartitionData]


class FetchOffset(NamedTuple):
    """A share partition that can be fetched, from its next fetch offset on."""

    target: ShareTarget
    share_partition: SharePartition
    offset: int


def _can_be_fetched(share: SharePartition) -> bool:
    return share.is_active and share.can_acquire


def _fetch_offset(target: ShareTarget, share: SharePartition) -> FetchOffset | None:
    """Where the share partition is to be fetched; None if it cannot be."""
    if not _can_be_fetched(share):
        return None
    return FetchOffset(target, share, share.next_fetch_offset())


def rotated(targets: Sequence[ShareTarget], epoch: int) -> Sequence[ShareTarget]:
    """The targets in an order that differs with each epoch, so that none of them starves."""
    if len(targets) < 2 or epoch < 1:
        return targets
    at = epoch % len(targets)
    return (*targets[at:], *targets[:at])


def bytes_each(bytes_max: int, count: int) -> list[int]:
    """The bytes for each of `count` partitions. Kafka gives the rest to a random
    one.
    """
    if not count:
        return []
    if bytes_max < count:
        return [1] * bytes_max + [0] * (count - bytes_max)
    share, rest = divmod(bytes_max, count)
    return [share + rest, *[share] * (count - 1)]


class ShareFetchReader:
    """The fetch of one request. `errors` are the partitions that cannot be fetched at all."""

    __slots__ = (
        "_broker",
        "_by_partition",
        "_bytes_min",
        "_member_id",
        "_read_committed",
        "_request",
        "_shares",
        "bytes_max",
        "errors",
    )

    def __init__(
        self,
        ctx: RequestContext,
        request: ShareFetchRequest,
        shares: Mapping[ShareTarget, SharePartition],
    ) -> None:
        self._broker = ctx.broker
        self._request = request
        self._member_id = request.member_id or ""
        self._shares = shares
        self._by_partition: dict[Partition, tuple[ShareTarget, SharePartition]] | None = None
        self.bytes_max = min(request.max_bytes, ctx.cluster.config_int("fetch.max.bytes"))
        throttling = ctx.cluster.quotas.throttling
        if throttling is not None:
            self.bytes_max = throttling.fetchable_bytes(client_of(ctx), self.bytes_max)
        self._bytes_min = min(request.min_bytes, self.bytes_max)
        configs = ShareGroupConfigs(ctx.cluster.configs, request.group_id or "")
        self._read_committed = configs.reads_committed
        self.errors: dict[ShareTarget, ErrorCode] = {}

    def _fetchable(self) -> list[FetchOffset]:
        found = (_fetch_offset(target, share) for target, share in self._shares.items())
        return [each for each in found if each is not None]

    # -- waiting -----------------------------------------------------------------------------------

    @property
    def must_answer(self) -> bool:
        """Whether the fetch need not wait: there are enough bytes, or a partition has an error."""
        fetchable = self._fetchable()
        if self.bytes_max < 0:
            return bool(fetchable)
        total = 0
        limits = bytes_each(self.bytes_max, len(fetchable))
        for each, limit in zip(fetchable, limits, strict=True):
            available = self._available(each)
            if available < 0:
                return True
            total += min(available, limit)
        return bool(fetchable) and total >= self._bytes_min

    def must_answer_after(self, changed: Partition) -> bool:
        """The same after a change of one partition, if the fetch had to wait before it."""
        least = max(self._bytes_min, 1)
        if self.bytes_max < least * len(self._shares):
            return self.must_answer  # the part of each partition matters
        if self._by_partition is None:
            self._by_partition = {
                share.partition: (target, share) for target, share in self._shares.items()
            }
        each = _fetch_offset(*self._by_partition[changed])
        if each is None:
            return False
        available = self._available(each)
        if available < 0 or available >= self._bytes_min:
            return True
        return available > 0 and self.must_answer  # those of the others count, too

    def _available(self, each: FetchOffset) -> int:
        """The readable bytes; -1 for an error."""
        if self._refusal(each.share_partition, each.offset):
            return -1
        log = each.share_partition.partition.log
        upper = self._upper_offset(each.share_partition)
        if each.offset >= upper:
            return -1 if each.offset > upper and log.batch_offset(each.offset) > upper else 0
        return log.bytes_between(each.offset, upper)

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> Generator[None, None, list[ShareFetched]]:
        """Acquire what can be acquired, in slices, and return it with the errors."""
        fetchable = [
            (target, share)
            for target, share in self._shares.items()
            if target not in self.errors and _can_be_fetched(share)
        ]
        if self.bytes_max < 0:
            # checkValidArguments throws for the partitions that could be fetched.
            self.errors |= {target: ErrorCode.UNKNOWN_SERVER_ERROR for target, _ in fetchable}
            fetchable = []
        remaining = self.bytes_max
        left = self._request.max_records
        rows: dict[ShareTarget, PartitionData] = {}
        limits = bytes_each(self.bytes_max, len(fetchable))
        nothing_read = True
        for number, ((target, share), limit) in enumerate(zip(fetchable, limits, strict=True)):
            if number and number % PARTITIONS_PER_SLICE == 0:
                yield
            each = _fetch_offset(target, share)
            if each is None:  # since the first slice, others have acquired its records
                continue
            bytes_max = min(limit, remaining)
            row, size, count = self._read_one(each, bytes_max, left, at_least_one=nothing_read)
            remaining = max(remaining - size, 0)
            nothing_read = nothing_read and not size
            left -= count
            rows[target] = row
        for target, error in self.errors.items():
            rows[target] = PartitionData(target.partition, error, records=b"")
        return list(rows.items())

    def _read_one(
        self, each: FetchOffset, bytes_max: int, records_max: int, *, at_least_one: bool
    ) -> tuple[PartitionData, int, int]:
        """The response of one partition, the bytes read, and the number of acquired records."""
        share, offset = each.share_partition, each.offset
        error = self._refusal(share, offset)
        row = PartitionData(each.target.partition, error, records=b"")
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            # The log start has moved past the offset. The client fetches again.
            row.error_code = self._log_start_moved(each)
            return row, 0, 0
        if error:
            return row, 0, 0
        log = share.partition.log
        upper = self._upper_offset(share)
        if offset >= upper:
            return row, 0, 0
        _, size = log.read(offset, upper, bytes_max, at_least_one=at_least_one)
        fetched = log.batches_read(offset, size)
        aborted = (
            log.producers.aborted_between(offset, log.offset_after(offset, size))
            if self._read_committed and size and log.producers.aborted
            else ()
        )
        mode = AcquireMode(self._request.share_acquire_mode)
        wanted = AcquireRequest(self._member_id, mode, self._request.batch_size, records_max)
        acquired = acquire(share, wanted, offset, fetched, aborted)
        if acquired.ranges:
            row.acquired_records = acquired.ranges
            row.records = fetched.records(
                acquired.ranges[0].first_offset, acquired.ranges[-1].last_offset
            )
        return row, size, acquired.offsets

    def _log_start_moved(self, each: FetchOffset) -> ErrorCode:
        share = each.share_partition
        try:
            share.log_start_moved(earliest_offset(share.partition, share.leader_epoch))
        except ApiError as error:
            self._broker.share_partitions.fence_if(share, error)
            return error.error
        return ErrorCode.NONE

    def _refusal(self, share: SharePartition, offset: int) -> ErrorCode:
        """The error of the checks before the log is read (Partition.fetchRecords)."""
        partition = share.partition
        if self._broker.log_dirs.is_offline(partition):
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition.leader_id != self._broker.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        _, topic_id, _ = share.key
        if topic_id != partition.topic.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        log = partition.log
        if not log.start_offset <= offset <= log.end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return ErrorCode.NONE

    def _upper_offset(self, share: SharePartition) -> int:
        partition = share.partition
        return partition.last_stable_offset if self._read_committed else partition.high_watermark
