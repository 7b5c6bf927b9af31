"""What tests of clients stand on, and what they share for a whole run.

Tours of the Python clients, franz-go and kafkajs ask for `bootstrap_servers` and run against ours
and, marked `real_kafka`, against Kafka itself, so that an assertion there is what Kafka does, not
what we think it does. Tests that look at the requests ask for `kafka` and `log`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.librdkafka import create_topic
from tests.support.real_kafka import SHARED_CONFIGS
from tests.support.transactional_clients import Tours
from tests.support.watched import kafka, log

__all__ = ["kafka", "log"]

# What Kafka does was seen when a test was written; every change of ours is tested with ours.
PEERS = [
    "mockbroker",
    pytest.param("kafka", marks=[pytest.mark.real_kafka, pytest.mark.slow]),
]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def our_bootstrap_servers() -> Iterator[str]:
    """Three brokers of ours for the whole run."""
    from mockbroker import Cluster

    with Cluster(brokers=3, configs=SHARED_CONFIGS) as cluster:
        yield cluster.bootstrap_servers


def bootstrap_servers_of(peer: str, request: pytest.FixtureRequest) -> str:
    name = "real_bootstrap_servers" if peer == "kafka" else "our_bootstrap_servers"
    return str(request.getfixturevalue(name))


@pytest.fixture(scope="session", params=PEERS)
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """A cluster for the whole run: three brokers of ours, or a real one."""
    return bootstrap_servers_of(request.param, request)


@pytest.fixture(scope="session")
def tours() -> Iterator[Tours]:
    """JVMs with the Java clients, started when a test asks for them, for the whole run."""
    opened = Tours()
    yield opened
    opened.close()


@pytest.fixture
def name() -> str:
    """A name for a topic or a group that no other test has."""
    return f"python-{next(_numbers)}"


@pytest.fixture
def topic(bootstrap_servers: str, name: str) -> str:
    """A topic of one partition."""
    create_topic(bootstrap_servers, name)
    return name


@pytest.fixture
def wide_topic(bootstrap_servers: str, name: str) -> str:
    """A topic of four partitions."""
    create_topic(bootstrap_servers, name, 4)
    return name
