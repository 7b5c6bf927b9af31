"""The laws of simulations, each as its docstring says it."""

from __future__ import annotations

import inspect

from markdown import page as join
from markdown import table

from mockbroker.simulation import LAWS

INTRO = """
# Laws of simulations

What `mockbroker simulate` holds every cluster to, drawn from `mockbroker/simulation/laws/`.
[Simulation](../simulation.md) tells how it is done.
"""


def page() -> str:
    rows = [(f"**{law.name}**", " ".join((inspect.getdoc(law) or "").split())) for law in LAWS]
    return join(INTRO, table(("law", "what must hold"), rows))
