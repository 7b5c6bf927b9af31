from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mockbroker import Cluster
from tests.support.new_members import CONFIGS, NewMembers
from tests.support.request_log import RequestLog
from tests.support.watched import admin, log

__all__ = ["admin", "kafka", "log", "members"]


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
def members(kafka: Cluster) -> Iterator[NewMembers]:
    """Makes members of groups on `kafka`."""
    with NewMembers(kafka) as made:
        yield made
