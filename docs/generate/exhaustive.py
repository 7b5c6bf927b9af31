"""How far the state machines were explored, from the counts that the exploration has left.

Nothing is explored here: `make exhaustive` does that, and a test holds the counts against a shorter
exploration.
"""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from types import ModuleType

from markdown import page as join
from markdown import table

from tests.simulation.exhaustive.counts import read_counts
from tests.simulation.exhaustive.plans import PLANS, ExplorationPlan

PACKAGE = "tests.simulation.exhaustive."
DATA = Path(__file__).resolve().parents[1] / "_data" / "exhaustive.json"

INTRO = """
# Explored to a depth

Tests with random events rarely come upon the one order that matters. A few events in every order
are few enough to be tried: `make exhaustive` takes each machine below through all sequences of its
events, up to a depth, breadth first. States that differ only in names, times or epochs count once.
What must hold is checked in each state and on each transition; a violation comes with a shortest
counterexample. From a sample of the states the machine is left in peace, to see that it comes to a
good end: members that do their duty, markers that arrive, followers that are answered.

Several beginnings save depth: a stable group, an open transaction, an isolated leader.
"""

BROKEN = """
Tests break each machine on purpose and see that the exploration finds it. `replicas-hw` needs no
breaking: a follower that cuts its log by the high watermark loses what was committed (KIP-101).

```text
make exhaustive
make exhaustive ARGS="--machine replicas-hw"
make exhaustive ARGS="--machine classic-group --depth 4"
```
"""


def page() -> str:
    return join(INTRO, _counts(), BROKEN, *_sections())


def _counts() -> str:
    counts = read_counts(DATA)
    rows = [
        (f"`{name}`", f"{c.depth}", f"{c.states:,}", f"{c.transitions:,}", f"{c.settled:,}")
        for name in PLANS
        if (c := counts.get(name)) is not None
    ]
    return table(("machine", "depth", "states", "transitions", "left in peace"), rows)


def _sections() -> list[str]:
    """One section for each module: what is in the world, and what must hold."""
    sections: dict[str, list[ExplorationPlan]] = {}
    for plan in PLANS.values():
        sections.setdefault(plan.world.__module__, []).append(plan)
    found = []
    for name, plans in sections.items():
        module = sys.modules[name]
        sentences = _sentences(module)
        found.append(
            "\n\n".join(
                (
                    "## " + ", ".join(f"`{plan.world.name}`" for plan in plans),
                    inspect.getdoc(module) or "",
                    "Beginnings: " + "; ".join(plans[0].world.beginnings) + ".",
                    "What must hold:",
                    "\n".join(f"- {sentence}" for sentence in sentences),
                )
            )
        )
    return found


def _sentences(module: ModuleType) -> list[str]:
    """What the calls of `must` say, each once: the module's, then those of what is around it."""
    found: dict[str, None] = {}
    tree = ast.parse(inspect.getsource(module))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda call: call.lineno):
        if getattr(node.func, "id", "") == "must":
            for value in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.setdefault(value.value)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            found |= dict.fromkeys(_sentences(sys.modules[node.module or ""]))
    return list(found)
