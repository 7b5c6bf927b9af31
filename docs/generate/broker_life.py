"""What may be done to a broker's process, drawn from the table that its controller obeys."""

from __future__ import annotations

from markdown import page as join
from markdown import table
from state_tables import theory

from mockbroker.core import broker_life
from mockbroker.core.broker_life import REFUSALS, STATES, TRANSITIONS, Step

INTRO = """
# The life of a broker

Drawn from `mockbroker/core/broker_life.py`. Only its table decides; what is not in it is refused.
[Replication](../replication.md) tells what follows for partitions.
"""


def page() -> str:
    rows = [(f"**{state}**", *(cell(state, step) for step in Step)) for state in STATES]
    return join(
        INTRO,
        theory(broker_life),
        "## Steps",
        "Where each step leads, by the state of the process, or why it is refused.",
        table(("state", *(step.value for step in Step)), rows),
    )


def cell(state: str, step: Step) -> str:
    found = TRANSITIONS[state].get(step)
    return found or f"*{REFUSALS[state][step].format(state=state)}*"
