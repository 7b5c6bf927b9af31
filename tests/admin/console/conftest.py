"""A cluster with its admin API, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from tests.support.http import HttpClient


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, topics={"orders": 2}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(kafka: Cluster) -> HttpClient:
    return HttpClient(kafka.admin_url)
