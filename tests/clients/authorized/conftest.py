"""One cluster with an authorizer for a module; topics and rights are each test's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from tests.clients.authorized.ways import authorized_cluster

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with authorized_cluster() as cluster:
        yield cluster


@pytest.fixture
def kafka(shared: Cluster) -> Iterator[Cluster]:
    """The cluster, with no rights but those that the test gives."""
    yield shared
    shared.call(lambda cluster: cluster.acls.replace([]))


@pytest.fixture
def topic(kafka: Cluster) -> str:
    name = f"topic-{next(_NUMBERS)}"
    kafka.topic(name).create(1)
    return name
