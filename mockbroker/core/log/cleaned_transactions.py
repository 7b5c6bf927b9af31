"""What a cleaner knows of transactions as it works its way through a log
(CleanedTransactionMetadata).

Data of an aborted transaction goes as soon as the cleaner meets it. A marker has to stay for as
long as there is data of its transaction: it goes in the round after the last of that went, and only
when its delete horizon has passed. The log's aborted index shrinks along with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.log.producer_state import AbortedTransaction
from mockbroker_protocol.records import BatchHeader, ControlType, parse_control_type, read_control


class CleanedTransactions:
    """The transactions of one pass over a log, from its beginning.

    `kept_aborted` are the entries of the aborted index that are still needed, by marker.
    """

    __slots__ = ("_committing", "_ongoing", "_seen", "_upcoming", "kept_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        # Popped from its end, hence the latest first.
        self._upcoming = sorted(aborted, key=lambda entry: -entry.first_offset)
        self._ongoing: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()  # producer ids of aborted transactions that have data here
        self._committing: set[int] = set()
        self.kept_aborted: list[AbortedTransaction] = []

    def _begin_up_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[-1].first_offset <= offset:
            entry = upcoming.pop()
            self._ongoing.setdefault(entry.producer_id, entry)

    def data(self, header: BatchHeader) -> bool:
        """Take note of a data batch; True if it belongs to an aborted transaction."""
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

    def marker(self, header: BatchHeader, batch: memoryview) -> bool:
        """Take note of a control batch; True if no data of its transaction is left."""
        self._begin_up_to(header.last_offset)
        if not header.count:
            return True  # the cleaner emptied it before
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
