"""When a transaction begins and ends, and its number."""

from __future__ import annotations

import pytest

from mockbroker.core.events import MarkerWritten, TransactionMoved
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from tests.pipeline.convert.support import Kept


class Told:
    """Events of producer id 9, and the ends that they have led to."""

    def __init__(self) -> None:
        self._kept = Kept()
        self._rows = Rows(self._kept)
        self.tables = Transactions(self._rows)
        self.ends: list[tuple[str, bool]] = []
        self.tables.on_end.append(lambda name, committed: self.ends.append((name, committed)))

    def moved(self, former: str, state: str) -> None:
        event = TransactionMoved(0, 1, "x", former, state, 9, 0, 1_000, 0)
        self.tables.moved(EventEntry(1, 0, 0, event), event)

    def marker(self, partition: int, *, committed: bool) -> None:
        event = MarkerWritten(0, "t", "id", partition, 0, 5, 9, 0, committed)
        self.tables.marker(EventEntry(1, 0, 0, event), event)

    def column(self, table: str) -> list[object]:
        self._rows.flush()
        return [row["transaction"] for row in self._kept.of(table)]


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_without_a_coordinator_ends_with_its_marker(committed: bool) -> None:
    """The next batch of the producer begins another one."""
    told = Told()
    told.tables.wrote(9)
    told.tables.wrote(9)
    told.marker(0, committed=committed)
    assert told.ends == [("9/1", committed)]
    told.tables.wrote(9)
    assert told.tables.current(9) == "9/2"
    assert told.column("markers") == ["9/1"]


@pytest.mark.parametrize("word", ["Commit", "Abort"])
def test_a_transaction_with_a_coordinator_ends_with_its_last_word(word: str) -> None:
    """Not with a marker: those of other partitions may come later."""
    told = Told()
    told.moved("Empty", "Ongoing")
    told.tables.wrote(9)
    told.moved("Ongoing", "Ongoing")
    told.moved("Ongoing", f"Prepare{word}")
    for partition in (0, 1):
        told.marker(partition, committed=word == "Commit")
    assert told.ends == []
    told.moved(f"Prepare{word}", f"Complete{word}")
    assert told.ends == [("9/1", word == "Commit")]
    told.moved(f"Complete{word}", "Empty")
    told.moved("Empty", "Ongoing")
    assert told.column("transactions") == ["9/1"] * 4 + [None, "9/2"]
    assert told.column("markers") == ["9/1"] * 2


def test_a_marker_of_an_unknown_producer_is_of_no_transaction_and_ends_none() -> None:
    told = Told()
    told.marker(0, committed=True)
    assert told.column("markers") == [None]
    assert told.ends == []
