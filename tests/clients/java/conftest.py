"""Every test of the Java clients runs against ours and, marked `real_kafka`, against Kafka itself.

So an assertion here is what Kafka does, not what we think it does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.conftest import PEERS, bootstrap_servers_of
from tests.clients.java.steps import Peer, Steps
from tests.support.tour import POMS, Tour
from tests.support.transactional_clients import Tours


@pytest.fixture(scope="session", params=PEERS)
def peer(request: pytest.FixtureRequest) -> Peer:
    """The cluster: three brokers of ours, or a real one."""
    servers = bootstrap_servers_of(request.param, request)
    return Peer(request.param, servers, 1 if request.param == "kafka" else 3)


@pytest.fixture(scope="session", params=list(POMS))
def tour(request: pytest.FixtureRequest, tours: Tours) -> Tour:
    """A JVM with the clients of one version."""
    return tours[request.param]


@pytest.fixture
def java(tour: Tour, peer: Peer) -> Iterator[Steps]:
    """The Java clients of one version on one cluster."""
    steps = Steps(tour, peer)
    yield steps
    steps.close_clients()
