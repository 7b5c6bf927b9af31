"""The soak: its measure of memory, and a short run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.soak import SLOPE_MAX, Counts, Sample, Soak, problems, slope, soaked
from mockbroker import Cluster

BEFORE = Counts(10, 20, 3)


def samples(growth: float, noise: float = 0.5) -> list[Sample]:
    dice = random.Random(1)
    return [Sample(n / 30, 50 + growth * n / 30 + dice.uniform(-noise, noise)) for n in range(180)]


def test_the_slope_is_that_of_the_least_squares() -> None:
    """With its standard error, without which noise would count as growth."""
    assert slope([Sample(n, 5.0 + 2 * n) for n in range(10)]) == (
        pytest.approx(2.0),
        pytest.approx(0),
    )
    growth, error = slope(samples(0.0))
    assert abs(growth) < 3 * error
    assert slope([])[1] == float("inf")


def test_growth_leftovers_and_errors_are_problems() -> None:
    """And a cluster without them has none."""
    with Cluster(brokers=1) as kafka:
        soak = Soak(kafka, 1)
        soak.samples = samples(0.0)
        assert problems(soak, BEFORE, Counts(9, 20, 3), []) == []
        soak.samples = samples(5 * SLOPE_MAX)
        found = problems(soak, BEFORE, Counts(10, 21, 3), ["Traceback"])
    assert [each.partition(":")[0].split(" by")[0] for each in found] == [
        "error in the log", "memory grows", "descriptors",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_cluster_stands_clients_and_faults(tmp_path: Path) -> None:
    """Clients of all kinds, with rules and actions by a seed, too short to show growth."""
    said: list[str] = []
    assert soaked(0.3, 1, tmp_path, said.append) == [], said
