"""Every test of the Java clients runs against ours and, marked `real_kafka`, against Kafka itself.

So an assertion here is what Kafka does, not what we think it does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.java.steps import Peer, Steps
from tests.support.tour import POMS, Tour

# By default members of the new protocol hear of a rebalance every five seconds.
CONFIGS = {
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


@pytest.fixture(
    scope="session",
    params=["mockbroker", pytest.param("kafka", marks=pytest.mark.real_kafka)],
)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """The cluster: three brokers of ours, or a real one."""
    if request.param == "kafka":
        from tests.support.real_kafka import RealKafka

        with RealKafka(configs=CONFIGS) as kafka:
            yield Peer("kafka", kafka.bootstrap_servers, 1)
    else:
        from mockbroker_fixtures.cluster import Cluster

        with Cluster(brokers=3, configs=CONFIGS) as cluster:
            yield Peer("mockbroker", cluster.bootstrap_servers, 3)


@pytest.fixture(scope="session", params=list(POMS))
def tour(request: pytest.FixtureRequest) -> Iterator[Tour]:
    """A JVM with the clients of one version."""
    tour = Tour(request.param)
    yield tour
    tour.close()


@pytest.fixture
def java(tour: Tour, peer: Peer) -> Iterator[Steps]:
    """The Java clients of one version on one cluster."""
    steps = Steps(tour, peer)
    yield steps
    steps.close_all()
