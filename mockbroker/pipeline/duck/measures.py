"""What was measured in a run rather than judged: lag, rebalances, latency, faults, skew."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from mockbroker.pipeline.duck.session import Session

# Name -> what a row is.
MEASURES: Mapping[str, str] = {
    "lag": "how far a group was behind on a partition, each time that became known",
    "rebalances": "a rebalance of a group: why, how long, who and what was moved",
    "ownership": "who owned a partition, from when to when",
    "latency": "how long the requests of a client to an API took",
    "faults": "what a rule did, and how long clients took to recover",
    "skew": "how many records and keys a partition has, against an even share",
}


# Where the lag is drawn, the points of a group and partition are put into so many lots; of each lot
# the last and the highest are kept.
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


class Measured(NamedTuple):
    """Rows of one measure, as columns name them."""

    columns: list[str]
    rows: list[tuple[object, ...]]


def measure(session: Session, name: str, *, thinned: bool = False) -> Measured:
    """One of MEASURES, over the tables of a session; `thinned`, as much of the lag as a drawing
    shows. Raises KeyError for another name.
    """
    MEASURES[name]
    file = resources.files("mockbroker.pipeline.duck").joinpath(f"measures/{name}.sql")
    sql = file.read_text(encoding="utf-8")
    if thinned and name == "lag":
        sql = _THINNED.format(tiles=_TILES, lag=sql)
    answer = session.connection.execute(sql)
    return Measured([column[0] for column in answer.description or ()], answer.fetchall())
