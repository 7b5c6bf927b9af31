"""The transactions that a cleaner finds in a log.

The cleaner drops data of an aborted transaction at once. It retains a marker while the log has data
of its transaction, and then until the marker's delete horizon. It drops the entry of the aborted
index with the marker's transaction.

Source: CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker_protocol.records import BatchHeader, ControlType, parse_control_type, read_control


class CleanedTransactionMetadata:
    """The transactions of one pass over a log, from its start.

    `kept_aborted` are the entries of the aborted index that are still needed, in marker order.
    """

    __slots__ = ("_committing", "_ongoing", "_seen", "_upcoming", "kept_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        # The latest first, because entries are popped from the end.
        self._upcoming = sorted(aborted, key=lambda entry: -entry.first_offset)
        self._ongoing: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()  # producer ids of aborted transactions with data
        self._committing: set[int] = set()
        self.kept_aborted: list[AbortedTransaction] = []

    def _begin_up_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[-1].first_offset <= offset:
            entry = upcoming.pop()
            self._ongoing.setdefault(entry.producer_id, entry)

    def on_batch_read(self, header: BatchHeader) -> bool:
        """Handle a data batch; returns True if it belongs to an aborted transaction."""
        if self._upcoming:
            self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        producer_id = header.producer_id
        if producer_id in self._ongoing:
            self._seen.add(producer_id)
            return True
        self._committing.add(producer_id)
        return False

    def on_control_batch_read(self, header: BatchHeader, batch: memoryview) -> bool:
        """Handle a control batch; returns True if its transaction has no data in the log."""
        self._begin_up_to(header.last_offset)
        if not header.count:
            return True  # an earlier cleaning has emptied it
        producer_id = header.producer_id
        kind = parse_control_type(read_control(header, batch).key)
        if kind is ControlType.ABORT:
            entry = self._ongoing.pop(producer_id, None)
            if producer_id not in self._seen:
                return True
            self._seen.discard(producer_id)
            if entry is not None:
                self.kept_aborted.append(entry)
            return False
        if kind is ControlType.COMMIT:
            if producer_id not in self._committing:
                return True
            self._committing.discard(producer_id)
        return False
