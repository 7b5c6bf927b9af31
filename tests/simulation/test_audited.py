"""The audit finds no bug in a cluster without one, whatever a schedule does to it.

Faults lose acknowledged records, give their offsets away again, depose coordinators and cut logs:
those findings are reports that name the fault.
"""

from __future__ import annotations

import pytest

from mockbroker.cli.simulation_audit import audited
from mockbroker.simulation.swarm import generate

ALL = 20
SEEDS_A_TEST = 10

# Schedules whose journals have many kinds of reports, by what the audit reports there.
REPORTED = {
    15: "writes of a deposed leader, and a high watermark that goes back",
    16: "a commit marker that an unclean election cuts off: the next marker aborts its records",
    33: "offsets that are given away again, and a reader that sees it",
    83: "losses of an unclean election, and commits that go back",
    91: "writes of a deposed leader, and commits to a deposed coordinator",
    118: "all of these but the high watermark",
}


@pytest.mark.parametrize("seed", REPORTED)
def test_the_consequence_of_a_fault_is_no_bug(seed: int) -> None:
    found = audited(generate(seed))
    assert found.judged
    assert found.violations == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, ALL, SEEDS_A_TEST))
def test_no_schedule_gives_a_bug(first: int) -> None:
    results = [audited(generate(seed)) for seed in range(first, first + SEEDS_A_TEST)]
    assert any(found.judged for found in results)
    assert [violation for found in results for violation in found.violations] == []
