"""Leaves the records of aborted transactions out of the acquired records.

A share consumer does not filter: with `share.isolation.level=read_committed` the broker archives
the batches of aborted transactions when it acquires them. Markers are acquired like records; the
consumer reports their offsets as gaps.

Source: SharePartition.maybeFilterAbortedTransactionalAcquiredRecords.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from mockbroker.core.log.fetched_batches import FetchedBatches
from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.states import RecordEvent
from mockbroker_protocol.messages.share_fetch import AcquiredRecords
from mockbroker_protocol.records.control import ControlType, parse_control_type, read_control

OffsetRange = tuple[int, int]


def filter_aborted(
    share_partition: SharePartition,
    fetched: FetchedBatches,
    ranges: Sequence[AcquiredRecords],
    aborted: Sequence[AbortedTransaction],
) -> list[AcquiredRecords]:
    """Archive the aborted batches; returns the acquired ranges without them."""
    batches = aborted_batches(fetched, aborted)
    for first, last in batches:
        floor = share_partition.batches.floor(first)
        low = first if floor is None else floor.first_offset
        in_flight = share_partition.batches.beginning_in(low, last)
        share_partition.archive(
            in_flight, first, last, RecordEvent.ABORT, "transaction_aborted", count=True
        )
    return without(ranges, batches)


def aborted_batches(
    fetched: FetchedBatches, aborted: Sequence[AbortedTransaction]
) -> list[OffsetRange]:
    """The first and last offsets of the batches that belong to aborted transactions."""
    upcoming = deque(sorted(aborted, key=lambda each: each.first_offset))
    producer_ids: set[int] = set()
    found = []
    for header, batch in fetched.headers():
        if not header.has_producer_id:
            continue
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            producer_ids.add(upcoming.popleft().producer_id)
        if header.is_control:
            control = read_control(header, batch)
            if parse_control_type(control.key) is ControlType.ABORT:
                producer_ids.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in producer_ids:
            found.append((header.base_offset, header.last_offset))
    return found


def without(
    ranges: Sequence[AcquiredRecords], left_out: Sequence[OffsetRange]
) -> list[AcquiredRecords]:
    """The ranges without some offsets; both are in order."""
    found: list[AcquiredRecords] = []
    for each in ranges:
        begin = each.first_offset
        for first, last in left_out:
            if last < begin or first > each.last_offset:
                continue
            if begin < first:
                found.append(AcquiredRecords(begin, first - 1, each.delivery_count))
            begin = last + 1
        if begin <= each.last_offset:
            found.append(AcquiredRecords(begin, each.last_offset, each.delivery_count))
    return found
