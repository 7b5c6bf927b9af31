"""Rows for the writer: mappings for most tables, arrays for records and deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mockbroker.pipeline.convert.batches import Numbers, OpenedBatch
from mockbroker.pipeline.convert.cluster_state import Place

ROWS_MAX = 4096
# The records that are collected before they become columns.
RECORDS_MAX = 1 << 16


class Sink(Protocol):
    """A receiver of rows and columns: a `TableWriter`, or one in memory."""

    def rows(self, table: str, rows: Iterable[Mapping[str, object]]) -> None: ...

    def columns(self, table: str, columns: Mapping[str, Any]) -> None: ...

    def describe(self, **facts: Any) -> None: ...

    def at(self, seq: int, virtual_ms: int, real_ns: int) -> None: ...


class Rows:
    """Collects rows for the writer."""

    def __init__(self, writer: Sink) -> None:
        self.writer = writer
        self.records = _Columns(writer, "records", "append_seq")
        self.deliveries = _Columns(writer, "deliveries", "response_seq")
        self._rows: dict[str, list[dict[str, object]]] = {}

    def add(self, table: str, row: dict[str, object]) -> None:
        """One row of any table but records and deliveries."""
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= ROWS_MAX:
            self._rows[table] = []
            self.writer.rows(table, rows)

    def flush(self) -> None:
        """Pass all rows to the writer."""
        self.records.flush()
        self.deliveries.flush()
        for table, rows in self._rows.items():
            self.writer.rows(table, rows)
        self._rows.clear()


class _Columns:
    """Records or deliveries of many batches, as arrays."""

    def __init__(self, writer: Sink, table: str, seq: str) -> None:
        self._writer = writer
        self._table = table
        self._seq = seq
        self._places: dict[Place, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._count = 0
        self._counts: list[int] = []
        self._seqs: list[int] = []
        self._at: list[int] = []  # places
        self._offsets: list[Numbers] = []
        self._positions: list[Numbers] = []
        self._timestamps: list[Numbers] = []
        self._hashes: list[Numbers] = []
        self._keys: list[tuple[Numbers, Any]] = []
        self._ids: list[list[str | None]] = []
        self._places.clear()

    def add_records(self, seq: int, place: Place, base_offset: int, opened: OpenedBatch) -> None:
        """Add the records of an appended batch."""
        count = len(opened)
        if not count:
            return
        self._start(seq, place, count)
        self._offsets.append(opened.deltas + base_offset)
        self._timestamps.append(opened.timestamps)
        self._hashes.append(opened.value_hashes)
        if opened.key_hashes is None:
            self._keys.append((np.zeros(count, np.int64), np.zeros(count, bool)))
        else:
            self._keys.append((opened.key_hashes, opened.has_key))
        self._ids.append(opened.ids or [None] * count)
        self._flush_if_full()

    def add_deliveries(
        self, seq: int, place: Place, position: int, offsets: Numbers, hashes: Numbers
    ) -> None:
        """Add records of an answer; `position` is that of the first."""
        count = len(offsets)
        if not count:
            return
        self._start(seq, place, count)
        self._positions.append(np.arange(position, position + count, dtype=np.int64))
        self._offsets.append(offsets)
        self._hashes.append(hashes)
        self._flush_if_full()

    def _start(self, seq: int, place: Place, count: int) -> None:
        self._count += count
        self._counts.append(count)
        self._seqs.append(seq)
        self._at.append(self._places.setdefault(place, len(self._places)))

    def _flush_if_full(self) -> None:
        if self._count >= RECORDS_MAX:
            self.flush()

    def flush(self) -> None:
        """Pass the columns to the writer."""
        if not self._count:
            return
        at = np.repeat(np.array(self._at, np.int32), self._counts)
        places = list(self._places)
        columns: dict[str, Any] = {
            self._seq: np.repeat(np.array(self._seqs, np.int64), self._counts),
            "topic": _named(at, [place.topic for place in places]),
            "topic_id": _named(at, [place.topic_id for place in places]),
            "partition": np.array([place.partition for place in places], np.int32)[at],
            "offset": np.concatenate(self._offsets),
            "value_hash": np.concatenate(self._hashes),
        }
        if self._positions:
            columns["position"] = np.concatenate(self._positions).astype(np.int32)
        if self._timestamps:
            columns["timestamp"] = np.concatenate(self._timestamps)
            keys = np.concatenate([keys for keys, _ in self._keys])
            missing = ~np.concatenate([there for _, there in self._keys])
            columns["key_hash"] = pa.array(keys, mask=missing)
            columns["id"] = [each for ids in self._ids for each in ids]
        self._writer.columns(self._table, columns)
        self._clear()


def _named(at: Any, names: list[str | None]) -> Any:
    """A column of names, given by their numbers."""
    return pa.array(names, pa.string()).take(pa.array(at))
