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


class Measured(NamedTuple):
    """Rows of one measure, as columns name them."""

    columns: list[str]
    rows: list[tuple[object, ...]]


def measure(session: Session, name: str) -> Measured:
    """One of MEASURES, over the tables of a session. Raises KeyError for another name."""
    MEASURES[name]
    sql = resources.files("mockbroker.pipeline.duck").joinpath(f"measures/{name}.sql")
    answer = session.connection.execute(sql.read_text(encoding="utf-8"))
    return Measured([column[0] for column in answer.description or ()], answer.fetchall())
