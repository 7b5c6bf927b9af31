"""Measures of a run: lag, rebalances, latency, faults, skew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockbroker.pipeline.duck.session import DuckSession, sql_file

# Name -> meaning of a row.
MEASURES: Mapping[str, str] = {
    "lag": "the lag of a group on a partition, at each report of an offset",
    "rebalances": "a rebalance of a group: cause, duration, members, moved partitions",
    "ownership": "the time of a member as the owner of a partition",
    "latency": "the latency of a client's requests to an API",
    "faults": "the effects of a rule, and the recovery time of clients",
    "skew": "the records and keys of a partition, compared with an even share",
}


# For a drawing, the points of the lag of a group and partition are divided into this many
# intervals. The last and the highest point of each are kept.
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

    With `thinned`, the lag has only the rows for a drawing. Raises KeyError for another name.
    """
    MEASURES[name]
    sql = sql_file(f"measures/{name}.sql")
    if thinned and name == "lag":
        sql = _THINNED.format(tiles=_TILES, lag=sql)
    return session.rows(sql)
