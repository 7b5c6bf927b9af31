"""Fixtures for tests of groups: a cluster whose requests are remembered, and members on it.

A folder's conftest imports them. `@pytest.mark.mock_kafka(...)` passes options to the cluster, as
it does for `mock_kafka`; the shortest session timeout is 100 ms unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from tests.support.members import Members, settings
from tests.support.request_log import RequestLog

CONFIGS = {"group.min.session.timeout.ms": 100}


@pytest.fixture
def log() -> RequestLog:
    """What clients sent to `kafka` and were told."""
    return RequestLog()


@pytest.fixture
def kafka(request: pytest.FixtureRequest, log: RequestLog) -> Iterator[Cluster]:
    """A cluster of the test's own with topic "t" of four partitions on three brokers."""
    options: dict[str, Any] = {"topics": {"t": 4}}
    for marker in reversed(list(request.node.iter_markers("mock_kafka"))):
        options.update(marker.kwargs)
    options["configs"] = CONFIGS | options.get("configs", {})
    with Cluster(trace=log, **options) as cluster:
        yield cluster


@pytest.fixture
def members(kafka: Cluster) -> Iterator[Members]:
    """Makes members of groups on `kafka`."""
    with Members(kafka) as made:
        yield made


@pytest.fixture
def admin(kafka: Cluster) -> AdminClient:
    """confluent-kafka's admin client on `kafka`."""
    return AdminClient(settings(kafka))


def fill(
    kafka: Cluster, topic: str, count: int, partition: int | None = None, *, first: int = 0
) -> list[str]:
    """Produce the values "0" to "count - 1", in turn to all partitions or to one; return them.

    With `first` they begin there.
    """
    indexes = kafka.call(lambda cluster: range(len(cluster.topics[topic].partitions)))
    producer = Producer(settings(kafka, linger_ms=0))
    values = [str(first + number) for number in range(count)]
    for number, value in enumerate(values):
        index = indexes[number % len(indexes)] if partition is None else partition
        producer.produce(topic, value, partition=index)
    assert producer.flush(30) == 0
    return values
