"""Measures of a run: lag, rebalances, latency, faults, skew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockbroker.pipeline.duck.session import DuckSession, sql_file

# Name -> meaning of a row.
MEASURES: Mapping[str, str] = {
    "lag": "how far a group was behind on a partition, each time that became known",
    "rebalances": "a rebalance of a group: why, how long, who and what was moved",
    "ownership": "who owned a partition, from when to when",
    "latency": "how long the requests of a client to an API took",
    "faults": "what a rule did, and how long clients took to recover",
    "skew": "how many records and keys a partition has, against an even share",
}


# For a drawing, the points of the lag of a group and partition are divided into so many intervals.
# The last and the highest of each are kept.
_TILES = 200
_THINNED = """
SELECT * EXCLUDE (tile) FROM (
    SELECT *, ntile({tiles}) OVER (
        PARTITION BY run, "group", topic_id, "partition" ORDER BY seq) AS tile
    FROM ({lag})
)
QUALIFY row_number() OVER (
          PARTITION BY run, "group", topic_id, "partition", tile ORDER BY seq DESC) = 1
     OR row_number() OVER (
          PARTITION BY run, "group", topic_id, "partition", tile ORDER BY lag DESC NULLS LAST, seq
        ) = 1
ORDER BY run, "group", topic, "partition", seq
"""


def measure(session: DuckSession, name: str, *, thinned: bool = False) -> list[dict[str, Any]]:
    """One of MEASURES, over the tables of a session: rows by the names of their columns.

    With `thinned`, the lag has the rows that a drawing needs. Raises KeyError for another name.
    """
    MEASURES[name]
    sql = sql_file(f"measures/{name}.sql")
    if thinned and name == "lag":
        sql = _THINNED.format(tiles=_TILES, lag=sql)
    return session.rows(sql)
