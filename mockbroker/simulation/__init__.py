"""A whole cluster with clients and faults, simulated from one number.

    from mockbroker.simulation import simulate

    assert simulate(seed=7).violations == []
    assert simulate(seed=7, mode="streams").violations == []  # over connections

A *plan* is a simulation as data; a *seed* makes a plan. A *step* is an action on the cluster at a
time of the plan. A *script* is the behaviour of a client. A *law* is a condition that must always
hold; a *violation* is a case in which it does not.
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
    from mockbroker.simulation.running import PlanResult, run, simulate
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
    "Plan",
    "PlanError",
    "PlanResult",
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

_MODULES = {
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
    "PlanResult": "running",
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
    """Import a name on its first use, because scripts need few modules."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_MODULES[name]}")
    return getattr(module, _RENAMED.get(name, name))
