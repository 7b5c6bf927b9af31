"""Whole clusters with clients and faults: in hundreds of them every law holds."""

from __future__ import annotations

from collections import Counter

import pytest

from mockbroker.simulation.many import result_of

SEEDS_A_TEST = 25
BUSY, FIRST, QUICK, ALL = 60, 75, 100, 150


@pytest.mark.parametrize(
    "first",
    [
        *range(FIRST, QUICK, SEEDS_A_TEST),
        *(pytest.param(n, marks=pytest.mark.slow) for n in range(QUICK, ALL, SEEDS_A_TEST)),
    ],
)
def test_every_law_holds(first: int) -> None:
    broken = []
    for seed in range(first, first + SEEDS_A_TEST):
        result = result_of(seed)
        broken += [f"seed {seed}: {violation}" for violation in result.violations]
    assert broken == []


def test_every_law_holds_in_the_first_seeds_which_are_not_idle() -> None:
    """Everything that clients and faults are for happens somewhere in a few dozen seeds."""
    counts: Counter[str] = Counter()
    broken = []
    for seed in range(FIRST):
        result = result_of(seed)
        broken += [f"seed {seed}: {violation}" for violation in result.violations]
        if seed < BUSY:
            counts.update(result.counts)
    assert broken == []
    for what in (
        "batches acknowledged",
        "batches read",
        "transactions committed",
        "transactions aborted",
        "offsets committed",
        "committed offsets read",
        "assignments taken",
        "admin requests answered",
        "calls disconnected",
        "calls timed out",
        "event LeaderChanged",
        "event IsrChanged",
        "event LogTruncated",
        "step cut_network",
        "step stop_broker",
        "step pause_broker",
        "step add_rule",
        "step restart",
        "step crash_client",
    ):
        assert counts[what] > 0, what
