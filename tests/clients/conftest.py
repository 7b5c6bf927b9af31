"""What tests of the Python clients stand on.

Their tours ask for `bootstrap_servers` and run against ours and, marked `real_kafka`, against Kafka
itself, so that an assertion there is what Kafka does, not what we think it does. Tests that look at
the requests ask for `kafka` and `log`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.watched import kafka, log

__all__ = ["kafka", "log"]

# By default a transaction that took too long is looked for every ten seconds.
CONFIGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
_numbers = itertools.count(1)


@pytest.fixture(
    scope="session",
    params=["mockbroker", pytest.param("kafka", marks=pytest.mark.real_kafka)],
)
def bootstrap_servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """A cluster for the whole run: three brokers of ours, or a real one."""
    if request.param == "kafka":
        from tests.support.real_kafka import RealKafka

        with RealKafka(configs=CONFIGS) as kafka:
            yield kafka.bootstrap_servers
    else:
        from mockbroker_fixtures.cluster import Cluster

        with Cluster(brokers=3, configs=CONFIGS) as cluster:
            yield cluster.bootstrap_servers


@pytest.fixture
def name() -> str:
    """A name for a topic or a group that no other test has."""
    return f"python-{next(_numbers)}"
