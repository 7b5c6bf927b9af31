"""One number decides everything: the plan, the order of all that happens, and what comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mockbroker.simulation import generate, parse_plan, run, simulate

SEEDS = (1, 7, 40, 77)

PATH = os.pathsep.join(sys.path)
TELL = """
import sys
from mockbroker.simulation import simulate
for seed in sys.argv[1:]:
    outcome = simulate(int(seed))
    print(seed, outcome.digest, sum(outcome.counts.values()))
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    first, second = simulate(seed), simulate(seed)
    assert first.digest == second.digest
    assert first.counts == second.counts
    assert first.violations == second.violations


def test_other_seeds_give_other_runs() -> None:
    assert len({simulate(seed).digest for seed in SEEDS}) == len(SEEDS)


def test_the_order_of_sets_and_dicts_of_a_process_decides_nothing() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", TELL, *map(str, SEEDS)],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(told) == 1


@pytest.mark.parametrize("seed", range(30))
def test_a_plan_is_the_same_after_it_was_written_and_read(seed: int) -> None:
    plan = generate(seed)
    assert generate(seed) == plan
    assert parse_plan(json.loads(plan.to_json())) == plan


def test_a_plan_gives_the_same_run_after_it_was_written_and_read() -> None:
    plan = generate(40)
    assert run(parse_plan(json.loads(plan.to_json()))).digest == run(plan).digest
