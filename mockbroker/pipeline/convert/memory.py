"""Rows of one table in memory, between two entries of the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mockbroker.pipeline.convert.converter import Converter
from mockbroker.pipeline.spool.notes import Begin, Note
from mockbroker.pipeline.store import arrow_schema
from mockbroker.pipeline.write import arrow_table

if TYPE_CHECKING:
    import pyarrow as pa


class _Kept:
    """Keeps what comes of one table, while it is told to."""

    def __init__(self, table: str) -> None:
        self.tables: list[pa.Table] = []
        self.keeps = False
        self._table = table
        self._schema = arrow_schema(table)

    def rows(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        if self.keeps and table == self._table:
            kept = list(rows)
            names = self._schema.names
            self.columns(table, {name: [row.get(name) for row in kept] for name in names})

    def columns(self, table: str, columns: Mapping[str, Any]) -> None:
        if self.keeps and table == self._table:
            self.tables.append(arrow_table(self._schema, columns))

    def tell(self, **facts: Any) -> None:
        """There is no manifest."""

    def at(self, seq: int, virtual_ms: int, real_ns: int) -> None:
        """There is no manifest."""


def table_between(
    notes: Iterable[Note], table: str, after: int, up_to: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a table that become known behind entry `after`, up to entry `up_to`.

    A row is known when nothing of it can change any more: a request's when it is answered. So what
    two neighbouring stretches bring is what one would. Without `up_to` all come, those included
    that still wait for something. The column `run` is the cluster's id.
    """
    import pyarrow as pa

    kept = _Kept(table)
    converter = Converter(kept)
    run = ""
    for note in notes:
        seq = getattr(note, "seq", 0) or getattr(note, "first_seq", 0)
        if up_to is not None and seq > up_to:
            break
        if seq > after and not kept.keeps:
            converter.flush()
            kept.keeps = True
        if isinstance(note, Begin):
            run = note.cluster_id
        converter.take(note)
    if up_to is None:
        kept.keeps = True
        converter.finish()
    else:
        converter.flush()
    for found in kept.tables:
        runs = pa.array([run] * found.num_rows, pa.string())
        yield from found.append_column("run", runs).to_batches()
