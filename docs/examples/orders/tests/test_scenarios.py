"""Each mistake fails its scenario, and the right program passes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SCENARIOS = PROJECT / "scenarios"

# scenario: the arguments of `python -m shop`
RUNS = {
    "lost-acknowledgement": ["till"],
    "crash": ["--restarts", "1", "kitchen"],
    "rebalance": ["kitchen"],
    "slow-oven": ["--max-poll-interval-ms", "2500", "kitchen"],
    "retention": ["--restarts", "1", "kitchen"],
    "aborted-bill": ["--restarts", "1", "billing", "kitchen"],
    "two-brokers-gone": ["--restarts", "5", "billing"],
    "two-brokers-die": ["--restarts", "5", "billing"],
    "flaky-broker": ["--restarts", "5", "billing"],
    "brokers-take-turns": ["--restarts", "5", "billing"],
    "restart-too-soon": ["--restarts", "5", "billing"],
}

MISTAKES = {
    "till:not-idempotent": "lost-acknowledgement",
    "kitchen:commits-first": "crash",
    "kitchen:auto-commit": "crash",
    "kitchen:forgetful": "rebalance",
    "kitchen:whole-batch": "slow-oven",
    "kitchen:latest": "retention",
    "kitchen:uncommitted": "aborted-bill",
}


def play(scenario, *arguments):
    command = [sys.executable, "-m", "mockbroker", "scenario", "run", f"scenarios/{scenario}.yaml"]
    shop = [sys.executable, "-m", "shop", *RUNS[scenario], *arguments]
    return subprocess.run(
        [*command, "--", *shop],
        cwd=PROJECT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_scenario_is_left_out():
    assert sorted(RUNS) == sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


@pytest.mark.parametrize("scenario", RUNS)
def test_the_shop_passes(scenario):
    done = play(scenario)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "ok"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake):
    done = play(MISTAKES[mistake], "--mistake", mistake)
    assert done.returncode == 1, done.stdout + done.stderr
    # A check failed, and not the program.
    assert "were expected" in done.stderr or "did not happen" in done.stderr, done.stderr
