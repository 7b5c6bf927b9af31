"""A whole cluster with clients and faults, simulated from one number.

    from mockbroker.simulation import simulate

    assert simulate(seed=7).violations == []
    assert simulate(seed=7, mode="streams").violations == []  # over connections

Nouns: a *plan* says everything about one simulation; a *seed* makes a plan. A *step* is something
that is done to the cluster at a time of the plan. A *script* is what a client does. A *law* is what
must hold whatever happens; where it does not, there is a *violation*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockbroker.simulation.laws import LAWS, Law, Violation
    from mockbroker.simulation.plan import (
        ClientSettings,
        Plan,
        PlanError,
        Settings,
        Step,
        TopicSettings,
    )
    from mockbroker.simulation.plan import parse as parse_plan
    from mockbroker.simulation.plan import read as read_plan
    from mockbroker.simulation.running import Outcome, run, simulate
    from mockbroker.simulation.shrinking import NotReproducedError, Shrunk, shrink
    from mockbroker.simulation.streams import SimulatedCluster, Wires, simulated_cluster
    from mockbroker.simulation.swarm import generate
    from mockbroker.simulation.virtual_run import DeadlockError, virtual_run

__all__ = [
    "LAWS",
    "ClientSettings",
    "DeadlockError",
    "Law",
    "NotReproducedError",
    "Outcome",
    "Plan",
    "PlanError",
    "Settings",
    "Shrunk",
    "SimulatedCluster",
    "Step",
    "TopicSettings",
    "Violation",
    "Wires",
    "generate",
    "parse_plan",
    "read_plan",
    "run",
    "shrink",
    "simulate",
    "simulated_cluster",
    "virtual_run",
]

_PLACES = {
    "generate": "swarm",
    "LAWS": "laws",
    "Law": "laws",
    "Violation": "laws",
    "ClientSettings": "plan",
    "Plan": "plan",
    "PlanError": "plan",
    "Settings": "plan",
    "Step": "plan",
    "TopicSettings": "plan",
    "parse_plan": "plan",
    "read_plan": "plan",
    "Outcome": "running",
    "run": "running",
    "simulate": "running",
    "NotReproducedError": "shrinking",
    "Shrunk": "shrinking",
    "shrink": "shrinking",
    "SimulatedCluster": "streams",
    "Wires": "streams",
    "simulated_cluster": "streams",
    "DeadlockError": "virtual_run",
    "virtual_run": "virtual_run",
}
_RENAMED = {"parse_plan": "parse", "read_plan": "read"}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is: scripts need nothing of the rest."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_PLACES[name]}")
    return getattr(module, _RENAMED.get(name, name))
