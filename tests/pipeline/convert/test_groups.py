"""Committed offsets as rows."""

from __future__ import annotations

import pytest

from mockbroker.core.events import OffsetCommitted
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.groups import GroupTables
from mockbroker.pipeline.convert.readers import GroupReaders
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from tests.pipeline.convert.support import Kept


@pytest.mark.parametrize(("transactional", "offsets"), [(False, [5]), (True, [])])
def test_an_offset_has_a_row_although_its_request_has_ended(
    transactional: bool, offsets: list[int]
) -> None:
    """The connection of the request may close before the offset is written. An offset of a
    transaction takes effect at the end of the transaction only.
    """
    kept, cluster = Kept(), RunState()
    rows = Rows(kept)
    tables = GroupTables(rows, cluster, Transactions(rows), GroupReaders(cluster))
    event = OffsetCommitted(0, 1, 7, "g", "orders", 0, 5, transactional)
    tables.offset_committed(EventEntry(9, 0, 0, event), event, None)
    rows.flush()
    found = kept.of("commits")
    assert [(row["group"], row["offset"], row["reset"]) for row in found] == [
        ("g", offset, False) for offset in offsets
    ]
