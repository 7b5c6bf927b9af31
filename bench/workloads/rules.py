"""What is there and does nothing, and what it costs all the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.model import QUICK, TIMES, Figures, Measure, Running, Scale
from bench.workloads.footprint import SecondCluster

if TYPE_CHECKING:
    from bench.workloads.pairs import Cost


class IdleRules:
    """A hundred rules that match nothing, against none, on one cluster, block by block."""

    name = "idle-rules"
    fresh = True
    excluded: Mapping[str, str] = SecondCluster.excluded
    measures: tuple[Measure, ...] = (
        Measure("idle-rules", "produce with 100 rules that match nothing", TIMES),
        Measure("idle-rules-low", "… its 95 % interval from", TIMES),
        Measure("idle-rules-high", "… to", TIMES),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        from bench.workloads import idle_rules  # a program of its own as well

        found = idle_rules.measure(_blocks(scale))
        return {
            "idle-rules": found.ratio,
            "idle-rules-low": found.low,
            "idle-rules-high": found.high,
        }


class KeptJournal:
    """A cluster that keeps a journal, against one that does not, block by block."""

    name = "journal"
    fresh = True
    excluded: Mapping[str, str] = SecondCluster.excluded
    measures: tuple[Measure, ...] = (
        Measure("journal", "produce with a journal, against none", TIMES),
        Measure("journal-low", "… its 95 % interval from", TIMES),
        Measure("journal-high", "… to", TIMES),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        from bench.workloads import kept_journal

        found = kept_journal.measure(_blocks(scale))
        return _figures("journal", found)


def _figures(measure: str, found: Cost) -> Figures:
    return {measure: found.ratio, f"{measure}-low": found.low, f"{measure}-high": found.high}


def _blocks(scale: Scale) -> int:
    from bench.workloads.pairs import BLOCKS, QUICK_BLOCKS

    return QUICK_BLOCKS if scale is QUICK else BLOCKS
