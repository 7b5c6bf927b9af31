"""The laws of simulations, each as its docstring says it."""

from __future__ import annotations

import inspect

from markdown import page as join
from markdown import table

from mockbroker.simulation import LAWS

INTRO = """
# Laws of simulations

The laws that `mockbroker simulate` checks, drawn from `mockbroker/simulation/laws/`.
[Simulation](../explanation/simulation.md) explains them.
"""


def page() -> str:
    rows = [(f"**{law.name}**", " ".join((inspect.getdoc(law) or "").split())) for law in LAWS]
    return join(INTRO, table(("law", "condition"), rows))
