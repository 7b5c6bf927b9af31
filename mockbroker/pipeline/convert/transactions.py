"""Transactions: their states, their markers, and which transaction a batch belongs to.

The n-th transaction of a producer id is `<producer id>/<n>`. One begins when the coordinator says
that it is ongoing, or when a transactional batch is written while none is; it ends when the
coordinator says that it is complete, or, where no coordinator knows the producer, with a marker.
"""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.world import Exchange
from mockbroker.pipeline.spool.notes import Fact

ONGOING = "Ongoing"
COMPLETE = {"CompleteCommit": True, "CompleteAbort": False}
_UNDER_WAY = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence", *COMPLETE)

# Called with a transaction that has ended, and whether it was committed.
Ended = Callable[[str, bool], None]


class Transactions:
    """Makes `transactions` and `markers`; `on_end` is told of each end."""

    def __init__(self, rows: Rows) -> None:
        self.on_end: list[Ended] = []
        self._rows = rows
        self._counts: dict[int, int] = {}
        self._open: set[int] = set()
        self._coordinated: set[int] = set()  # producer ids that a coordinator speaks of
        self._of_id: dict[str, str] = {}  # transactional id -> its transaction under way

    def current(self, producer_id: int) -> str | None:
        """The transaction that a producer id is in, or was in last."""
        count = self._counts.get(producer_id)
        return None if count is None else f"{producer_id}/{count}"

    def wrote(self, producer_id: int) -> None:
        """A transactional batch was appended, or offsets were sent."""
        if producer_id not in self._open:
            self._begin(producer_id)

    def _begin(self, producer_id: int) -> str:
        self._counts[producer_id] = self._counts.get(producer_id, 0) + 1
        self._open.add(producer_id)
        return f"{producer_id}/{self._counts[producer_id]}"

    def moved(self, note: Fact) -> None:
        """A transactional id went to another state."""
        told = note.fact
        name, state, producer_id = told["transactional_id"], told["state"], told["producer_id"]
        self._coordinated.add(producer_id)
        if state == ONGOING and told["former"] != ONGOING:
            self.wrote(producer_id)
            transaction = self.current(producer_id)
            assert transaction is not None
            self._of_id[name] = transaction
        transaction = self._of_id.get(name)
        self._add(
            note,
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=told["producer_epoch"],
            transaction=transaction if state in _UNDER_WAY else None,
            former=told["former"],
            state=state,
        )
        if state in COMPLETE and transaction is not None:
            del self._of_id[name]
            self._end(transaction, committed=COMPLETE[state])

    def _end(self, transaction: str, *, committed: bool) -> None:
        self._open.discard(int(transaction.partition("/")[0]))
        for told in self.on_end:
            told(transaction, committed)

    def marker(self, note: Fact) -> None:
        """A marker was written."""
        told = note.fact
        producer_id = told["producer_id"]
        transaction = self.current(producer_id)
        self._rows.add(
            "markers",
            {
                "seq": note.seq,
                "virtual_ms": note.virtual_ms,
                "real_ns": note.real_ns,
                "topic": told["topic"],
                "topic_id": told["topic_id"],
                "partition": told["partition"],
                "offset": told["offset"],
                "producer_id": producer_id,
                "producer_epoch": told["producer_epoch"],
                "transaction": transaction,
                "committed": told["committed"],
            },
        )
        if transaction not in self._of_id.values() and transaction is not None:
            # No coordinator ends it: an administrator does, partition by partition.
            self._end(transaction, committed=told["committed"])

    def initialized(self, exchange: Exchange) -> None:
        """InitProducerId was answered."""
        response, answer = exchange.response, exchange.answer
        if response is None or answer is None or response.error_code:
            return
        self._rows.add(
            "transactions",
            {
                "seq": answer.seq,
                "virtual_ms": answer.virtual_ms,
                "real_ns": answer.real_ns,
                "transactional_id": exchange.message.transactional_id,
                "producer_id": response.producer_id,
                "producer_epoch": response.producer_epoch,
                "state": "InitProducerId",
            },
        )

    def _add(self, note: Fact, **columns: object) -> None:
        times = {"seq": note.seq, "virtual_ms": note.virtual_ms, "real_ns": note.real_ns}
        self._rows.add("transactions", {**times, **columns})
