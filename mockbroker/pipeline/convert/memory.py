"""Rows of one table in memory, of a range of entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mockbroker.pipeline.convert.converter import Converter
from mockbroker.pipeline.spool.format import RunStarted, SpoolEntry
from mockbroker.pipeline.store import arrow_schema
from mockbroker.pipeline.write import arrow_table

if TYPE_CHECKING:
    import pyarrow as pa


class _TableCollector:
    """Collects the rows of one table while `is_on`."""

    def __init__(self, table: str) -> None:
        self.tables: list[pa.Table] = []
        self.is_on = False
        self._table = table
        self._schema = arrow_schema(table)

    def rows(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        if self.is_on and table == self._table:
            found = list(rows)
            names = self._schema.names
            self.columns(table, {name: [row.get(name) for row in found] for name in names})

    def columns(self, table: str, columns: Mapping[str, Any]) -> None:
        if self.is_on and table == self._table:
            self.tables.append(arrow_table(self._schema, columns))

    def describe(self, **facts: Any) -> None:
        """No effect: there is no manifest."""

    def at(self, seq: int, virtual_ms: int, real_ns: int) -> None:
        """No effect: there is no manifest."""


def table_between(
    entries: Iterable[SpoolEntry], table: str, after: int, up_to: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a table that become final behind entry `after`, up to entry `up_to`.

    The row of a request is final when the request is answered. The rows of two adjacent ranges are
    therefore those of both together. Without `up_to` all rows are returned, final or not. The
    column `run` is the cluster's id.
    """
    import pyarrow as pa

    collector = _TableCollector(table)
    converter = Converter(collector)
    run = ""
    for entry in entries:
        seq = getattr(entry, "seq", 0) or getattr(entry, "first_seq", 0)
        if up_to is not None and seq > up_to:
            break
        if seq > after and not collector.is_on:
            converter.flush()
            collector.is_on = True
        if isinstance(entry, RunStarted):
            run = entry.cluster_id
        converter.convert(entry)
    if up_to is None:
        collector.is_on = True
        converter.finish()
    else:
        converter.flush()
    for found in collector.tables:
        runs = pa.array([run] * found.num_rows, pa.string())
        yield from found.append_column("run", runs).to_batches()
