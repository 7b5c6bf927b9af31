"""What is there and does nothing, and what it costs all the same."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from bench.model import QUICK, TIMES, Figures, Measure, Running, Scale
from bench.workloads.footprint import SecondCluster

if TYPE_CHECKING:
    from bench.workloads.pairs import Cost


class _Pairs:
    """A cluster with something, against one without it, block by block."""

    fresh = True
    excluded: Mapping[str, str] = SecondCluster.excluded
    name: str
    measures: tuple[Measure, ...]
    program: str
    """The module that measures; it is a program of its own as well."""

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        from bench.workloads.pairs import BLOCKS, QUICK_BLOCKS

        measure = import_module(self.program).measure
        found: Cost = measure(QUICK_BLOCKS if scale is QUICK else BLOCKS)
        names = (measure.name for measure in self.measures)
        return dict(zip(names, (found.ratio, found.low, found.high), strict=True))


def _with_interval(name: str, title: str) -> tuple[Measure, ...]:
    return (
        Measure(name, title, TIMES),
        Measure(f"{name}-low", "… its 95 % interval from", TIMES),
        Measure(f"{name}-high", "… to", TIMES),
    )


class IdleRules(_Pairs):
    """A hundred rules that match nothing, against none, on one cluster."""

    name = "idle-rules"
    measures = _with_interval(name, "produce with 100 rules that match nothing")
    program = "bench.workloads.idle_rules"


class KeptJournal(_Pairs):
    """A cluster that keeps a journal, against one that does not."""

    name = "journal"
    measures = _with_interval(name, "produce with a journal, against none")
    program = "bench.workloads.kept_journal"


class OpenConsole(_Pairs):
    """A cluster whose console is open in a browser, against one that nobody looks at."""

    name = "console"
    measures = _with_interval(name, "produce with an open console, against none")
    program = "bench.workloads.open_console"
