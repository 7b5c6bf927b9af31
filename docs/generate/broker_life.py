"""What may be done to a broker's process, drawn from the table that its controller obeys."""

from __future__ import annotations

from markdown import page as join
from markdown import table
from state_tables import theory

from mockbroker.core.brokers import broker_life
from mockbroker.core.brokers.broker_life import REFUSALS, STATES, TRANSITIONS, ProcessEvent

INTRO = """
# The life of a broker

Drawn from `mockbroker/core/brokers/broker_life.py`. [Replication](../explanation/replication.md)
explains the effects on partitions.
"""


def page() -> str:
    rows = [(f"**{state}**", *(cell(state, event) for event in ProcessEvent)) for state in STATES]
    return join(
        INTRO,
        theory(broker_life),
        "## Steps",
        "The state after each event, by the state of the process, or the reason of a refusal.",
        table(("state", *(event.value for event in ProcessEvent)), rows),
    )


def cell(state: str, event: ProcessEvent) -> str:
    found = TRANSITIONS[state].get(event)
    return found or f"*{REFUSALS[state][event].format(state=state)}*"
