"""The tables of a run, drawn from their declarations."""

from __future__ import annotations

from markdown import page as join
from markdown import table

from mockbroker.pipeline.tables import SCHEMA_VERSION, TABLES, WANTED_REMOVALS

INTRO = f"""
# Tables of a run

Drawn from their declarations. [Export and audit
tables](../howto/journal.md#export-and-audit-tables) shows their use, and
[the audit](../explanation/audit.md) defines its findings over them. This is schema version
{SCHEMA_VERSION}.

A table is in `<directory>/<table>/run=<run>/part-<n>.parquet`, so every table also has the column
`run`. A table without rows has no directory. `seq` is the number of the journal's entry, in the
order of events. Times are `virtual_ms` (the cluster's clock, ms since the epoch) and `real_ns`
(real time, ns since the epoch). `topic_id` and `partition` identify a partition, because a
recreated topic is another topic. Null means unknown or not applicable.
"""


def page() -> str:
    blocks = [INTRO]
    for name, declared in TABLES.items():
        blocks.append(f"## {name}\n\n{declared.meaning[0].upper()}{declared.meaning[1:]}.")
        rows = ((f"`{column.name}`", column.kind, column.meaning) for column in declared)
        blocks.append(table(("column", "type", "meaning"), rows))
    wanted = ", ".join(f"`{reason}`" for reason in WANTED_REMOVALS)
    blocks.append(f"Wanted reasons of `removals`: {wanted}.")
    return join(*blocks)
