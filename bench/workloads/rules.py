"""Rules that match nothing, and what they cost all the same."""

from __future__ import annotations

from collections.abc import Mapping

from bench.model import QUICK, TIMES, Figures, Measure, Running, Scale
from bench.workloads.footprint import SecondCluster

BLOCKS, QUICK_BLOCKS = 60, 20


class IdleRules:
    """A hundred rules that match nothing, against none, on one cluster, block by block."""

    name = "idle-rules"
    fresh = True
    excluded: Mapping[str, str] = SecondCluster.excluded
    measures: tuple[Measure, ...] = (
        Measure("idle-rules", "produce with 100 rules that match nothing", TIMES),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        from bench.workloads import idle_rules  # a program of its own as well

        found = idle_rules.measure(QUICK_BLOCKS if scale is QUICK else BLOCKS)
        return {"idle-rules": found.ratio}
