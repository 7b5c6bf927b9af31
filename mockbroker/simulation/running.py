"""Running plans, and what comes out."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

from mockbroker.core.garbage import no_collections
from mockbroker.simulation.fast import FastRun
from mockbroker.simulation.laws import Violation
from mockbroker.simulation.plan import Plan, check
from mockbroker.simulation.swarm import generate
from mockbroker.simulation.world import World

Mode = Literal["fast", "streams"]
"""How clients reach brokers: by calls of the handlers, or over connections in memory."""


class PlanResult(NamedTuple):
    """What came of a plan: the laws that were broken, a checksum of all that happened, and how
    often what happened.
    """

    plan: Plan
    violations: list[Violation]
    digest: str
    counts: Counter[str]
    mode: Mode = "fast"

    @property
    def laws(self) -> list[str]:
        """The names of the laws that were broken, each once, in order."""
        return list(dict.fromkeys(each.law for each in self.violations))


def run(plan: Plan, mode: Mode = "fast") -> PlanResult:
    """Run a plan to its rest. Raises PlanError where it names what does not exist."""
    check(plan)
    with no_collections():
        return _run(plan, mode)


def _run(plan: Plan, mode: Mode) -> PlanResult:
    if mode == "streams":
        from mockbroker.simulation.stream_run import run_over_streams

        world, answered = run_over_streams(plan)
    else:
        world = World(plan)
        fast = FastRun(world)
        fast.run()
        answered = fast.answered
    counts = Counter(world.history.counts)
    counts["requests answered"] = answered
    for name, count in world.events.items():
        counts[f"event {name}"] = count
    for name, count in world.performed.items():
        counts[f"step {name}"] = count
    for name, count in world.refused.items():
        counts[f"refused {name}"] = count
    return PlanResult(plan, world.laws.violations, world.digest.hexdigest(), counts, mode)


def simulate(seed: int, mode: Mode = "fast") -> PlanResult:
    """Run the plan of a seed, which names nothing that does not exist."""
    with no_collections():
        return _run(generate(seed), mode)
