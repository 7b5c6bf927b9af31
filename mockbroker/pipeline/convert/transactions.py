"""Transactions: their states, their markers, and the transaction of a batch.

The n-th transaction of a producer id is `<producer id>/<n>`. It begins with the coordinator's state
Ongoing, or with a transactional batch outside of a transaction. It ends with the coordinator's
complete state or, for a producer without a coordinator, with a marker.

The counts of producer ids that began no transaction for long are forgotten. Such a producer id goes
on with a number above its former ones.
"""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.events import MarkerWritten, TransactionMoved
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.cluster_state import ConvertedExchange, times
from mockbroker.pipeline.convert.recent import ENTRIES_MAX
from mockbroker.pipeline.convert.rows import Rows

ONGOING = "Ongoing"
COMPLETE = {"CompleteCommit": True, "CompleteAbort": False}
_UNDER_WAY = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence", *COMPLETE)

# Called with an ended transaction, and whether it was committed.
Ended = Callable[[str, bool], None]


class Transactions:
    """Makes `transactions` and `markers`; `on_end` is called at each end."""

    def __init__(self, rows: Rows) -> None:
        self.on_end: list[Ended] = []
        self._rows = rows
        self._counts: dict[int, int] = {}  # by producer id, the last to begin one at the end
        self._forgotten = 0  # the highest of the counts that are forgotten
        self._open: set[int] = set()
        self._of_id: dict[str, str] = {}  # transactional id -> its open transaction

    def current(self, producer_id: int) -> str | None:
        """The open or the last transaction of a producer id."""
        return self._current(producer_id) if producer_id in self._counts else None

    def _current(self, producer_id: int) -> str:
        return f"{producer_id}/{self._counts[producer_id]}"

    def wrote(self, producer_id: int) -> None:
        """A transactional batch was appended, or offsets were sent."""
        if producer_id not in self._open:
            self._counts[producer_id] = self._counts.pop(producer_id, self._forgotten) + 1
            self._open.add(producer_id)
            self._forget()

    def _forget(self) -> None:
        """Forget the oldest counts, but those of open transactions."""
        while len(self._counts) > ENTRIES_MAX + len(self._open):
            oldest = next(iter(self._counts))
            count = self._counts.pop(oldest)
            if oldest in self._open:
                self._counts[oldest] = count
            else:
                self._forgotten = max(self._forgotten, count)

    def moved(self, entry: EventEntry, event: TransactionMoved) -> None:
        """The state of a transactional id changed."""
        name, state = event.transactional_id, event.state
        if state == ONGOING and event.former != ONGOING:
            self.wrote(event.producer_id)
            self._of_id[name] = self._current(event.producer_id)
        transaction = self._of_id.get(name)
        self._rows.add(
            "transactions",
            {
                **times(entry),
                "transactional_id": name,
                "producer_id": event.producer_id,
                "producer_epoch": event.producer_epoch,
                "transaction": transaction if state in _UNDER_WAY else None,
                "former": event.former,
                "state": state,
            },
        )
        if state in COMPLETE and transaction is not None:
            del self._of_id[name]
            self._end(transaction, committed=COMPLETE[state])

    def _end(self, transaction: str, *, committed: bool) -> None:
        self._open.discard(int(transaction.partition("/")[0]))
        for on_end in self.on_end:
            on_end(transaction, committed)

    def marker(self, entry: EventEntry, event: MarkerWritten) -> None:
        """A marker was written."""
        transaction = self.current(event.producer_id)
        self._rows.add(
            "markers",
            {
                **times(entry),
                "topic": event.topic,
                "topic_id": event.topic_id,
                "partition": event.partition,
                "leader_epoch": event.leader_epoch,
                "offset": event.offset,
                "producer_id": event.producer_id,
                "producer_epoch": event.producer_epoch,
                "transaction": transaction,
                "committed": event.committed,
            },
        )
        if transaction not in self._of_id.values() and transaction is not None:
            # An administrator ends it without a coordinator, partition by partition.
            self._end(transaction, committed=event.committed)

    def initialized(self, exchange: ConvertedExchange) -> None:
        """InitProducerId was answered."""
        response, answer = exchange.response, exchange.answer
        if response is None or answer is None or response.error_code:
            return
        self._rows.add(
            "transactions",
            {
                **times(answer),
                "transactional_id": exchange.message.transactional_id,
                "producer_id": response.producer_id,
                "producer_epoch": response.producer_epoch,
                "state": "InitProducerId",
            },
        )
