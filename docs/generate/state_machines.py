"""All state machines on one page, each drawn by the module that reads its tables."""

from __future__ import annotations

import re

import broker_life
import consumer_group_states
import group_states
import replica_fetcher
import sasl_states
import share_group_states
import share_states
import streams_group_states
import transaction_states
from markdown import page as join

INTRO = """
# State machines

The tables on this page are the tables that the code executes. A transition without a cell cannot
happen.
"""

MACHINES = (
    group_states,
    consumer_group_states,
    share_states,
    streams_group_states,
    share_group_states,
    transaction_states,
    broker_life,
    replica_fetcher,
    sasl_states,
)

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def page() -> str:
    return join(INTRO, *(demoted(machine.page()) for machine in MACHINES))


def demoted(text: str) -> str:
    """The page with each heading one level further down; fenced blocks are left alone."""
    parts = _FENCED.split(text)
    parts[::2] = [re.sub(r"^#", "##", part, flags=re.MULTILINE) for part in parts[::2]]
    return "".join(parts)
