"""The tables of a run, drawn from their declarations."""

from __future__ import annotations

from markdown import page as join
from markdown import table

from mockbroker.pipeline.tables import SCHEMA_VERSION, TABLES, WANTED_REMOVALS

INTRO = f"""
# Tables of a run

Drawn from their declarations. [The pipeline](../pipeline.md) tells how they come about, and
[the audit](../audit.md) what they prove. This is schema version {SCHEMA_VERSION}.

A table lies in `<directory>/<table>/run=<run>/part-<n>.parquet`, so every table also has the column
`run`. A table without a row has no directory. `seq` numbers are those of the journal's entries: the
order in which the cluster did things. Times are `virtual_ms` (the cluster's clock, ms since the
epoch) and `real_ns` (real time, ns since the epoch). A partition is `topic_id` and `partition`,
because a topic that was deleted and made again is another. A null means that nothing is known or
that it does not apply.
"""


def page() -> str:
    blocks = [INTRO]
    for name, declared in TABLES.items():
        blocks.append(f"## {name}\n\n{declared.meaning[0].upper()}{declared.meaning[1:]}.")
        rows = ((f"`{column.name}`", column.kind, column.meaning) for column in declared)
        blocks.append(table(("column", "type", "meaning"), rows))
    wanted = ", ".join(f"`{reason}`" for reason in WANTED_REMOVALS)
    blocks.append(f"Reasons of `removals` that somebody wanted: {wanted}.")
    return join(*blocks)
