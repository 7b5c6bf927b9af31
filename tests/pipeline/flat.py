"""Many made-up histories as one set of files: a table each, with the run as a column.

Two thousand runs in the layout of `mockbroker.pipeline.tables` would be thirty thousand files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mockbroker.pipeline.tables import TABLES
from tests.pipeline.histories import Story

ARROW = {"string": "string", "strings": "list", "bool": "bool_"}


def write_flat(stories: Iterable[Story], directory: Path) -> None:
    """Writes `<directory>/<table>.parquet` for every table, empty ones too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stories = list(stories)
    for table in TABLES.values():
        fields = [
            pa.field(c.name, pa.list_(pa.string()) if c.kind == "strings" else _arrow(c.kind))
            for c in table
        ]
        schema = pa.schema([*fields, pa.field("run", pa.string())])
        rows = [{**row, "run": s.run} for s in stories for row in s.tables[table.name]]
        pq.write_table(pa.Table.from_pylist(rows, schema), directory / f"{table.name}.parquet")


def _arrow(kind: str) -> object:
    import pyarrow as pa

    return getattr(pa, ARROW.get(kind, kind))()
