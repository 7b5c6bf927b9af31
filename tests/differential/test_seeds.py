"""What a case compares does not depend on what a peer draws: topic ids, member ids, producer ids.

Assignors go by the order of hash tables of such ids, and a real broker draws them anew in each run.
A case that depends on them would fail in a few runs of a hundred. Our cluster draws from its seed,
so that many draws can be looked at without a real broker.
"""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from tests.differential.registry import load_cases
from tests.differential.test_differential import CONFIGS, differences, play

pytestmark = pytest.mark.slow

SEEDS = range(1, 6)
CASES = {
    name: case
    for name, case in load_cases().items()
    if "group" in case.play.__module__ and case.cluster == "one" and not case.slow
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_a_case_compares_is_the_same_for_every_seed(name: str) -> None:
    configs = {**CONFIGS, "mockbroker.auto.created.at.once": "false"}
    with Cluster(brokers=1, configs=configs, seed=0) as kafka:
        first = play(CASES[name], kafka.endpoint(1))
    for seed in SEEDS:
        with Cluster(brokers=1, configs=configs, seed=seed) as kafka:
            found = list(differences(first, play(CASES[name], kafka.endpoint(1))))
        assert not found, f"seed {seed}: {found[:5]}"
