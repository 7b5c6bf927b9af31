"""The simulator's plans against Kafka itself: the laws that ours keeps are kept by real brokers.

A law that a real broker breaks is no law.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker.simulation import run
from tests.support.real_kafka import SEVERAL_NODES, RealKafka
from tests.support.real_plans import BROKERS, CONFIGS, real_plan
from tests.support.real_run import run_real

SEEDS = {
    84: ("transactions committed", "assignments taken", "step pause_broker", "step stop_broker"),
    11: ("transactions committed", "assignments taken", "step stop_broker", "step crash_client"),
    18: ("transactions committed", "admin requests answered", "step stop_broker"),
}
"""Each with what happens in it, whoever runs it."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[RealKafka]:
    with RealKafka(brokers=BROKERS, configs=CONFIGS) as kafka:
        yield kafka


@pytest.mark.slow
@pytest.mark.real_kafka
@pytest.mark.xdist_group(SEVERAL_NODES)
@pytest.mark.java
@pytest.mark.parametrize("seed", SEEDS)
def test_real_brokers_keep_the_laws(seed: int, kafka: RealKafka) -> None:
    outcome = run_real(real_plan(seed), kafka)
    assert outcome.violations == []
    for what in ("batches acknowledged", "batches read", *SEEDS[seed]):
        assert outcome.counts[what] > 0, what


@pytest.mark.parametrize("seed", SEEDS)
def test_ours_keep_the_laws_under_the_same_plans(seed: int) -> None:
    outcome = run(real_plan(seed))
    assert outcome.violations == []
    for what in ("batches acknowledged", "batches read"):
        assert outcome.counts[what] > 0, what
