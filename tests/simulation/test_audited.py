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

# Schedules whose faults are seen in the journal, by what they do.
TELLING = {
    9: "an election that an action brings about, and a leader without the last records",
    55: "a deposed leader's records of acks=1, and others at their offsets",
    151: "deleted offsets that are given away again after an unclean election",
    185: "a generation that a deposed coordinator gave out",
    186: "a broker without the controller writes to a deleted topic",
    187: "a deposed coordinator takes a commit; a follower loses its power",
    202: "an unclean election past a leader that still runs",
}


@pytest.mark.parametrize("seed", TELLING)
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
