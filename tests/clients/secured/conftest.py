"""One cluster with all listeners for a module; its clients' topics are their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from tests.clients.secured.ways import secured_cluster

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with secured_cluster() as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: Cluster) -> str:
    """A topic of two partitions, each led by another broker."""
    name = f"topic-{next(_NUMBERS)}"
    kafka.topic(name).create(2)
    return name
