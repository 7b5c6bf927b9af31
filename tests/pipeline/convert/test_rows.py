"""Rows on their way to the writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from mockbroker.pipeline.convert.batches import OpenedBatch
from mockbroker.pipeline.convert.cluster_state import Place
from mockbroker.pipeline.convert.rows import RECORDS_MAX, ROWS_MAX, Rows
from tests.pipeline.convert.support import Kept

PLACE = Place("t", "id", 0)


class Counted(Kept):
    """How many rows of which table the writer got at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[tuple[str, int]] = []

    def columns(self, table: str, columns: Mapping[str, Any]) -> None:
        self.got.append((table, len(columns["offset"])))


def numbers(count: int) -> Any:
    return np.arange(count, dtype=np.int64)


def records(count: int) -> OpenedBatch:
    return OpenedBatch(numbers(count), numbers(count), numbers(count), None, None, None)


@pytest.mark.parametrize("table", ["records", "deliveries"])
def test_no_more_records_are_kept_back_than_the_limit(table: str) -> None:
    sink = Counted()
    rows = Rows(sink)

    def add(count: int) -> None:
        if table == "records":
            rows.records.add_records(1, PLACE, 0, records(count))
        else:
            rows.deliveries.add_deliveries(1, PLACE, 0, numbers(count), numbers(count))

    add(RECORDS_MAX - 1)
    assert sink.got == []
    add(1)
    assert sink.got == [(table, RECORDS_MAX)]
    add(7)
    rows.flush()
    assert sink.got == [(table, RECORDS_MAX), (table, 7)]


def test_no_more_rows_of_a_table_are_kept_back_than_the_limit() -> None:
    """Each is passed on once."""
    sink = Kept()
    rows = Rows(sink)
    for number in range(ROWS_MAX - 1):
        rows.add("gaps", {"first_seq": number})
    rows.add("faults", {"seq": 1})
    assert sink.of("gaps") == []
    rows.add("gaps", {"first_seq": ROWS_MAX - 1})
    assert [row["first_seq"] for row in sink.of("gaps")] == list(range(ROWS_MAX))
    assert sink.of("faults") == []
    rows.add("gaps", {"first_seq": ROWS_MAX})
    for _ in range(2):
        rows.flush()
        assert [row["first_seq"] for row in sink.of("gaps")] == list(range(ROWS_MAX + 1))
        assert sink.of("faults") == [{"seq": 1}]
