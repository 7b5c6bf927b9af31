"""How a member acquires the records of a fetch.

Whole batches of the log are acquired, so that they can be sent and acknowledged as they are. In the
mode `record_limit` (KIP-1206) a fetch acquires no more records than its maximum; the rest of the
last batch stays Available. Records in flight are acquired again in the batches in which they were
acquired before.

A record that cannot be processed may fail its whole batch. From half of the delivery limit on, a
fetch therefore acquires fewer and fewer records, and a record alone at its last delivery.

Source: SharePartition.acquire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mockbroker.core.log.fetched_batches import FetchedBatches
from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker.core.share.aborted import filter_aborted
from mockbroker.core.share.emitters import emit_acquired
from mockbroker.core.share.in_flight import InFlightBatch, InFlightState
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.states import AcquireMode, RecordEvent, RecordState
from mockbroker_protocol.messages.share_fetch import AcquiredRecords

THROTTLE_LIMIT_MIN = 2  # deliveries without fewer records
DELIVERED_ALONE_ABOVE = 2  # a limit that leaves room for a delivery alone


class AcquireRequest(NamedTuple):
    """The request of a fetch to a share partition. `batch_size` is the best number of records of an
    acquired batch; `records_max` is the rest of the fetch's maximum.
    """

    member_id: str
    mode: AcquireMode
    batch_size: int
    records_max: int


class Acquired(NamedTuple):
    """The acquired ranges, in order, and how many offsets they have."""

    ranges: list[AcquiredRecords]
    offsets: int


NOTHING = Acquired([], 0)


def acquire(
    share_partition: SharePartition,
    request: AcquireRequest,
    fetch_offset: int,
    fetched: FetchedBatches,
    aborted: Sequence[AbortedTransaction] = (),
) -> Acquired:
    """Acquire what can be acquired of the batches that were read from `fetch_offset`.

    `aborted` are the aborted transactions in these batches, if the group reads committed records.
    """
    if not share_partition.is_active or request.records_max <= 0 or not fetched:
        return NOTHING
    if fetched.last_offset < share_partition.start_offset:
        return NOTHING
    acquisition = _Acquisition(share_partition, request, fetched)
    if not acquisition.set_limits(fetch_offset):
        return NOTHING
    acquisition.run(fetch_offset)
    ranges, count = acquisition.ranges, acquisition.count
    if not ranges:
        return NOTHING
    if aborted:
        ranges = filter_aborted(share_partition, fetched, ranges, aborted)
        count = sum(each.last_offset - each.first_offset + 1 for each in ranges)
    emit_acquired(share_partition, request.member_id, ranges)
    return Acquired(ranges, count)


class _Acquisition:
    """One call of `acquire`."""

    __slots__ = (
        "_fetched",
        "_last_offset",
        "_member_id",
        "_records_max",
        "_request",
        "_share",
        "_strict",
        "count",
        "ranges",
    )

    def __init__(
        self, share_partition: SharePartition, request: AcquireRequest, fetched: FetchedBatches
    ) -> None:
        self._share = share_partition
        self._request = request
        self._fetched = fetched
        self._member_id = request.member_id
        self._strict = request.mode is AcquireMode.RECORD_LIMIT
        self._records_max = request.records_max
        self._last_offset = fetched.last_offset
        self.ranges: list[AcquiredRecords] = []
        self.count = 0

    def set_limits(self, fetch_offset: int) -> bool:
        """Limit the records by the room in flight; False if there is no room.

        Without room, records that are in flight already may still be acquired again.
        """
        share = self._share
        room = share.configs.record_locks_max - share.count_in_flight
        if room > 0:
            self._records_max = min(self._records_max, room)
            return True
        if fetch_offset > share.end_offset:
            return False
        self._last_offset = min(self._last_offset, share.end_offset)
        return True

    def run(self, fetch_offset: int) -> None:
        share = self._share
        base_offset = first_base = self._fetched.base_offset
        self._archive_compacted(fetch_offset, first_base)
        if self._last_offset < first_base:
            return  # without room, and compaction has removed what could be acquired again
        floor = share.batches.floor(base_offset)
        if floor is None:
            # The SPSO may be inside the first batch.
            base_offset = max(base_offset, share.start_offset)
        elif floor.last_offset >= base_offset:
            base_offset = floor.first_offset
        low = min(first_base, base_offset)
        in_flight = share.batches.beginning_in(low, self._last_offset)
        if not in_flight:
            self._acquire_new(base_offset, self._last_offset, self._records_max)
            return
        self._acquire_in_flight(in_flight, base_offset)
        if self.count < self._records_max and in_flight[-1].last_offset < self._last_offset:
            first = in_flight[-1].last_offset + 1
            self._acquire_new(first, self._last_offset, self._records_max - self.count)
        if self.ranges:
            share.gap_acquired_up_to(self.ranges[-1].last_offset + 1)

    def _archive_compacted(self, fetch_offset: int, base_offset: int) -> None:
        """Archive the Available records before the first batch: compaction has removed them."""
        share = self._share
        if not share.batches or fetch_offset >= base_offset:
            return
        floor = share.batches.floor(fetch_offset)
        low = fetch_offset
        if floor is not None and floor.last_offset >= fetch_offset:
            low = floor.first_offset
        batches = share.batches.beginning_in(low, base_offset - 1)
        share.archive(
            batches, fetch_offset, base_offset - 1, RecordEvent.REMOVE, "compaction", count=True
        )

    # -- records in flight -------------------------------------------------------------------------

    def _acquire_in_flight(self, in_flight: Sequence[InFlightBatch], base_offset: int) -> None:
        share = self._share
        gap_start = base_offset
        for batch in in_flight:
            if self.count >= self._records_max:
                return
            if share.gap_is_open:
                if gap_start < batch.first_offset:
                    room = self._records_max - self.count
                    self._acquire_new(gap_start, batch.first_offset - 1, room)
                gap_start = batch.last_offset + 1
                if self.count >= self._records_max:
                    return
            if not self._acquire_again(batch):
                # Nothing else goes with records that were delivered often.
                self._records_max = 0
                return

    def _acquire_again(self, batch: InFlightBatch) -> bool:
        """Acquire the Available records of one batch; False if nothing may follow them."""
        first, last = self._fetched.base_offset, self._last_offset
        room = self._records_max - self.count
        throttled = self._is_throttled(batch)
        if throttled and self.count > 0:
            return False
        if (
            batch.whole is not None
            and not throttled
            and batch.is_within(first, last)
            and not (self._strict and batch.count > room)
        ):
            if batch.whole.is_acquirable:
                batch.whole.acquire(self._member_id, self._share.new_lock())
                self._add(batch.first_offset, batch.last_offset, batch.whole.delivery_count)
                self.count += batch.count
            return True
        if batch.whole is not None:
            if not batch.whole.is_acquirable:
                return True
            batch.split()
        acquired = self._acquire_offsets(batch, room)
        self.count += acquired
        return not (throttled and acquired)

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        limit = _throttle_limit(self._share.configs.delivery_count_limit)
        if batch.whole is not None:
            return batch.whole.is_acquirable and batch.whole.delivery_count >= limit
        first, last = self._fetched.base_offset, self._last_offset
        return any(
            state.delivery_count >= limit
            for _, state in batch.states(first, last)
            if state.is_acquirable
        )

    def _acquire_offsets(self, batch: InFlightBatch, room: int) -> int:
        """Acquire the Available offsets of a split batch; returns how many.

        The first record that was delivered often decides how many records come with it: each
        further delivery halves the batch.
        """
        limit = self._share.configs.delivery_count_limit
        throttle_limit = _throttle_limit(limit)
        may_isolate = limit > DELIVERED_ALONE_ABOVE
        most = room if self._strict else batch.count
        throttled = False
        acquired = 0
        deadline_ms = 0
        for offset, state in batch.states(self._fetched.base_offset, self._last_offset):
            if not state.is_acquirable:
                continue
            delivered = state.delivery_count
            if may_isolate and delivered == limit - 1 and acquired > 0:
                break
            if delivered >= throttle_limit and not throttled:
                throttled = True
                halved = max(1, batch.count >> (delivered - throttle_limit + 1))
                most = min(most, halved) if acquired < halved else most
            deadline_ms = deadline_ms or self._share.new_lock()
            state.acquire(self._member_id, deadline_ms)
            self._add_one(offset, state, is_first=acquired == 0)
            acquired += 1
            if (may_isolate and state.delivery_count == limit) or acquired >= most:
                break
        return acquired

    # -- new records -------------------------------------------------------------------------------

    def _acquire_new(self, first_offset: int, last_offset: int, records_max: int) -> None:
        """Acquire records that are not in flight, to the end of their batch."""
        share = self._share
        first, last = first_offset, last_offset
        if not share.batches:
            # A part of the batch was final before.
            first = max(first, share.end_offset)
        if records_max < last - first + 1:
            last = self._fetched.batch_end(first + records_max - 1)
            if share.gap_is_open:
                # The batches in flight behind a gap are not those of the log.
                last = min(last, last_offset)
        acquired_to = self._put_in_flight(first, last, records_max)
        if share.batches.first.first_offset == first:
            share.begin_at(first)
        share.end_offset = max(share.end_offset, last)
        share.gap_acquired_up_to(acquired_to + 1)
        self.count += acquired_to - first + 1

    def _put_in_flight(self, first: int, last: int, records_max: int) -> int:
        """Put new batches in flight; returns the last offset that is acquired."""
        share = self._share
        deadline_ms = share.new_lock()
        if self._strict:
            batch = self._new_batch(first, last, deadline_ms)
            if batch.count > records_max:
                self._limit(batch, records_max)
                last = first + records_max - 1
            self._add(first, last, 1)
            return last
        begin = first
        if last - first + 1 > self._request.batch_size:
            for base_offset in self._fetched.base_offsets:
                if begin + self._request.batch_size <= base_offset <= last:
                    self._new_batch(begin, base_offset - 1, deadline_ms)
                    self._add(begin, base_offset - 1, 1)
                    begin = base_offset
        self._new_batch(begin, last, deadline_ms)
        self._add(begin, last, 1)
        return last

    def _new_batch(self, first: int, last: int, deadline_ms: int) -> InFlightBatch:
        state = InFlightState(RecordState.ACQUIRED, 1, self._member_id, deadline_ms)
        batch = InFlightBatch(first, last, state)
        self._share.batches.add(batch)
        return batch

    def _limit(self, batch: InFlightBatch, records_max: int) -> None:
        """Leave the records after the first `records_max` Available."""
        states = batch.split()
        states[records_max:] = [
            InFlightState(RecordState.AVAILABLE, 0) for _ in range(batch.count - records_max)
        ]
        self._share.find_next_fetch_offset = True

    # -- ranges ------------------------------------------------------------------------------------

    def _add(self, first: int, last: int, delivery_count: int) -> None:
        self.ranges.append(AcquiredRecords(first, last, delivery_count))

    def _add_one(self, offset: int, state: InFlightState, *, is_first: bool) -> None:
        """Add one offset; it extends the range before it in the same batch."""
        before = self.ranges[-1] if self.ranges and not is_first else None
        if (
            before is not None
            and before.last_offset + 1 == offset
            and before.delivery_count == state.delivery_count
        ):
            before.last_offset = offset
        else:
            self._add(offset, offset, state.delivery_count)


def _throttle_limit(delivery_count_limit: int) -> int:
    """From how many deliveries on a fetch acquires fewer records."""
    return max(THROTTLE_LIMIT_MIN, (delivery_count_limit + 1) // 2)
