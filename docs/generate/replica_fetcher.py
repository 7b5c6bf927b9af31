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

Drawn from `mockbroker/core/replication/fetcher.py`. Only its table decides; what is not in it
cannot happen. [Replication](../replication.md) tells when there is a follower at all.
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
        "What comes from the controller, from the leader, or from a timer.",
        table(("event", "what it says"), events),
        "## Steps",
        "What each event makes a follower do, by its state.",
        table(("event", *(state.name for state in FetcherState)), rows),
    )
