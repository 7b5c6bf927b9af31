"""The soak: its verdict, and a short run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.soak import Counts, Soak, problems, soaked
from bench.soak_memory import GROWTH_MAX
from mockbroker import Cluster
from tests.bench.test_soak_memory import samples

BEFORE = Counts(10, 20, 3)


def test_growth_leftovers_and_errors_are_problems() -> None:
    """And a cluster without them has none."""
    with Cluster(brokers=1) as kafka:
        soak = Soak(kafka, 1)
        soak.samples = samples(0.0)
        assert problems(soak, BEFORE, Counts(9, 20, 3), []) == []
        soak.samples = samples(5 * GROWTH_MAX)
        found = problems(soak, BEFORE, Counts(10, 21, 3), ["Traceback"])
    assert [each.partition(":")[0].split(" by")[0] for each in found] == [
        "error in the log", "memory grows", "descriptors",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cluster_stands_clients_and_faults(tmp_path: Path) -> None:
    """Clients of all kinds, with rules and actions by a seed, too short to show growth.

    They pause for long, so that other tests go on beside them.
    """
    said: list[str] = []
    assert soaked(3.0, 1, tmp_path, said.append, pause_s=2.0) == [], said
