"""Patterns of delivery, tried harder than on the pages of the docs that show them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One broker with the topics of `@pytest.mark.topics("orders", "bills")`, one partition each.

    `@pytest.mark.mock_kafka(...)` passes other options.
    """
    options: dict[str, object] = {"brokers": 1}
    for marker in request.node.iter_markers("mock_kafka"):
        options.update(marker.kwargs)
    with Cluster(**options) as cluster:  # type: ignore[arg-type]
        yield cluster
