"""The links from clients to brokers, cut by rules that drop everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import RuledCluster

CUT_CLIENTS = "cut_network"
# Evaluated first: a lost request reaches no other rule.
CUT_PRIORITY = 1_000_000


class RuledClientLinks:
    """The links from clients to the brokers of one cluster (a `ClientLinks`)."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: RuledCluster) -> None:
        self._cluster = cluster

    def cut(self, nodes: int | list[int], clients: Mapping[str, Any], *, both_ways: bool) -> None:
        """Cut the links from the clients, by a plan of its own."""
        from mockbroker.core.faults.effects.connections import CutOff
        from mockbroker.core.faults.engine import engine_of
        from mockbroker.core.faults.rules import FaultPlan, Match, Rule, When

        engine = engine_of(self._cluster)
        number = 1
        while f"{CUT_CLIENTS}-{number}" in engine.plans:
            number += 1
        name = f"{CUT_CLIENTS}-{number}"
        match = Match(broker=nodes, **clients)
        effect = {"cut_off": CutOff(both_ways=both_ways)}
        engine.add(FaultPlan(name, 0, (Rule(name, match, When(), effect, priority=CUT_PRIORITY),)))

    def heal(self) -> None:
        """Remove these plans."""
        engine = self._cluster.fault_engine
        if engine is not None:
            for name in [name for name in engine.plans if name.startswith(CUT_CLIENTS)]:
                engine.remove(name)
