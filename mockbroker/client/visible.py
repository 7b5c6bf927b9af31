"""The records of a Fetch response that an application gets.

Control records are never among them; with read_committed, records of aborted transactions are not
either. The response lists these by producer id and first offset. From there on, the producer's
transactional batches are skipped until its ABORT marker (KIP-98, Java's CompletedFetch).
"""

from __future__ import annotations

from mockbroker_protocol.messages.fetch import PartitionData
from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    Record,
    check_crc,
    iter_records,
    next_fetch_offset,
    parse_control_type,
    read_control,
    split_batches,
)


def visible_records(
    data: PartitionData, position: int, *, read_committed: bool
) -> tuple[list[Record], int]:
    """The records at or after `position`, and the position after all that the answer holds.

    Raises the errors of `mockbroker_protocol.records` for bytes that are no valid batches.
    """
    if not data.records:
        return [], position
    # One buffer: only encoders get several.
    buffer = memoryview(data.records)  # type: ignore[arg-type]
    records = _of_batches(buffer, _Aborted(data, active=read_committed))
    found = [record for record in records if record.offset >= position]
    return found, max(position, next_fetch_offset(buffer, position))


def _of_batches(buffer: memoryview, aborted: _Aborted) -> list[Record]:
    records: list[Record] = []
    for header, batch in split_batches(buffer):
        check_crc(batch)
        if aborted.hides(header, batch) or header.is_control:
            continue
        records.extend(iter_records(header, batch))
    return records


class _Aborted:
    """The producers whose transactional batches are being skipped."""

    def __init__(self, data: PartitionData, *, active: bool) -> None:
        transactions = (data.aborted_transactions or []) if active else []
        self._upcoming = sorted(transactions, key=lambda t: t.first_offset, reverse=True)
        self._producers: set[int] = set()

    def hides(self, header: BatchHeader, batch: memoryview) -> bool:
        while self._upcoming and self._upcoming[-1].first_offset <= header.last_offset:
            self._producers.add(self._upcoming.pop().producer_id)
        if header.producer_id not in self._producers or not header.is_transactional:
            return False
        if header.is_control:
            if parse_control_type(read_control(header, batch).key) is ControlType.ABORT:
                self._producers.discard(header.producer_id)
            return False
        return True
