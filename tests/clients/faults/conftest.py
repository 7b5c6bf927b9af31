"""One cluster for each module; every test has its own topic and starts without rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from mockbroker import Cluster

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=6) as running:
        yield running


@pytest.fixture
def kafka(cluster: Cluster) -> Iterator[Cluster]:
    """The module's cluster, without rules before and after."""
    cluster.faults.clear()
    yield cluster
    cluster.faults.clear()


@pytest.fixture
def topic(kafka: Cluster) -> str:
    """A topic of two partitions, both led by broker 1."""
    name = f"orders-{next(_NUMBERS)}"
    kafka.call(lambda cluster: cluster.create_topic(name, assignments={0: [1, 2, 3], 1: [1, 2, 3]}))
    return name


@pytest.fixture
def group() -> str:
    """A name for a group that no other test has."""
    return f"faulty-group-{next(_NUMBERS)}"
