"""What a follower does with each event, drawn from the table that it obeys."""

from __future__ import annotations

import inspect

from markdown import page as join
from markdown import table
from state_tables import theory

from mockbroker.core.replication import fetcher as replica_fetcher
from mockbroker.core.replication.fetcher import TRANSITIONS, FetcherState

INTRO = """
# The follower

Drawn from `mockbroker/core/replication/fetcher.py`. [Replication](../explanation/replication.md)
explains when a follower has its own log and uses this machine.
"""


def page() -> str:
    rows = [
        (f"**{event.__name__}**", *(step.value for step in steps))
        for event, steps in TRANSITIONS.items()
    ]
    events = [
        (f"**{event.__name__}**", (inspect.getdoc(event) or "").replace("\n", " "))
        for event in TRANSITIONS
    ]
    return join(
        INTRO,
        theory(replica_fetcher),
        "## Events",
        "Events from the controller, the leader, or a timer.",
        table(("event", "meaning"), events),
        "## Steps",
        "The step of a follower for each event, by its state.",
        table(("event", *(state.name for state in FetcherState)), rows),
    )
