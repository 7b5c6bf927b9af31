"""What mockbroker wants to reach, as data, and the verdict on a run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.model import Unit
from bench.run import Results
from bench.workloads.fairness import TITLES as GREED
from bench.workloads.share import MEMBERS

OURS = "mockbroker"


@dataclass(frozen=True)
class Goal:
    """A bound on `measure` of ours: absolute, or a ratio to the best figure of the peers named.

    Whether it bounds from above or below follows from the measure: for speeds it is the least,
    for times and sizes the most.
    """

    measure: str
    bound: float
    peers: tuple[str, ...] = ()

    def words(self, unit: Unit) -> str:
        sign = "≥" if unit.better == "higher" else "≤"
        if not self.peers:
            return f"{sign} {unit.text(self.bound)}"
        whom = self.peers[0] if len(self.peers) == 1 else "the better of " + "/".join(self.peers)
        return f"{sign} {self.bound:g}× {whom}"


@dataclass(frozen=True)
class Verdict:
    """How a goal came out. `value` is the absolute figure or the ratio; None if not measured."""

    goal: Goal
    value: float | None
    met: bool | None


def _both_sizes(name: str, driver: str, bound: float, peers: tuple[str, ...]) -> list[Goal]:
    return [Goal(f"{name}-{driver}-{size}", bound, peers) for size in ("100B", "1KiB")]


GOALS: tuple[Goal, ...] = (
    Goal("start", 0.3),
    Goal("second-cluster", 0.010),
    Goal("renewal", 0.001),
    Goal("idle", 60e6),
    Goal("idle-rules", 1.10),
    Goal("journal", 1.05),
    Goal("console", 1.05),
    Goal("api-versions-p50", 1.0, ("kfake",)),
    Goal("sequential-p50", 0.8, ("real",)),
    Goal("sequential-p50", 1.25, ("kfake",)),
    *(
        Goal(f"delivery-{percent}", bound, (peer,))
        for percent in ("p50", "p99")
        for peer, bound in (("real", 0.5), ("kfake", 1.5))
    ),
    *_both_sizes("produce", "librdkafka", 1.0, ("kfake",)),
    *_both_sizes("produce", "franz-go", 1.0, ("kfake",)),
    *_both_sizes("consume", "librdkafka", 1.0, ("real", "kfake")),
    Goal("stored", 1.2),
    Goal("connections-time", 0.8),
    Goal("connections-memory", 40e3),
    Goal("create", 0.5),
    Goal("metadata-first", 0.020),
    Goal("metadata-p50", 0.020),
    Goal("groups-time", 3.0),
    Goal("flat-partitions", 1.2),
    Goal("flat-groups", 1.2),
    *(Goal(f"fairness-{kind}", 3.0) for kind in GREED),
    Goal("crowd-connections", 40e3),
    Goal("crowd-groups", 20e3),
    *(
        Goal(f"transactions-{driver}-{records}", 1.0, ("real",))
        for driver in ("librdkafka", "franz-go")
        for records in (1, 10, 100)
    ),
    Goal("open-transactions", 1.2),
    Goal("aborted-transactions", 1.2),
    *(Goal(f"share-{members}", 1.0, ("real",)) for members in MEMBERS),
    Goal("streams-start", 0.5, ("real",)),
    Goal("retention-week", 0.2),
    Goal("snapshot-restore", 0.002),
    Goal("reset", 0.001),
    Goal("record-bytes", 12),
    Goal("delivery-bytes", 12),
    Goal("audit-spark", 150),
    Goal("audit-spark-skew", 1.15),
    Goal("audit-spark-growth", 1.1),
    Goal("audit-duckdb", 25),
    Goal("audit-duckdb-skew", 1.15),
    Goal("audit-duckdb-growth", 1.1),
    Goal("spark-read", 1.0, ("real",)),
    Goal("spark-batch-p50", 1.0, ("real",)),
)


def ratios(results: Results, measure: str, peers: Sequence[str], better: str) -> list[float]:
    """Ours over the best of the peers, round by round; rounds that lack either are left out.

    Ratios are taken within a round because its turns ran one after another: the machine's bad
    minutes are in both. A round in which that peer's figure is 0 has no ratio and is left out too:
    the memory that it grew by was there before.
    """
    best = max if better == "higher" else min
    found = []
    for figures in results.rounds(measure):
        others = [figures[peer] for peer in peers if peer in figures]
        if OURS in figures and len(others) == len(peers) and best(others) > 0:
            found.append(figures[OURS] / best(others))
    return found


def judge(goal: Goal, results: Results, unit: Unit) -> Verdict:
    if goal.peers:
        values = ratios(results, goal.measure, goal.peers, unit.better)
    else:
        values = [figures[OURS] for figures in results.rounds(goal.measure) if OURS in figures]
    if not values:
        return Verdict(goal, None, None)
    value = statistics.median(values)
    met = value >= goal.bound if unit.better == "higher" else value <= goal.bound
    return Verdict(goal, value, met)
