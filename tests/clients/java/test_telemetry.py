"""Java's producers push what the cluster asks them for (KIP-714)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from tests.clients.java.steps import Peer, Steps
from tests.clients.java.test_tools import TOOLS, run
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, configs={"telemetry.receiver": "true"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def peer(kafka: Cluster) -> Peer:
    return Peer("mockbroker", kafka.bootstrap_servers, 1)


def test_a_producer_pushes_the_metrics_that_a_subscription_names(
    kafka: Cluster, java: Steps
) -> None:
    run(
        java,
        f"{TOOLS}.ClientMetricsCommand",
        *("--alter", "--name", "connections", "--interval", "100", "--match", "client_id=shop"),
        *("--metrics", "org.apache.kafka.producer.connection."),
    )
    topic = java.topic()
    shop, other = java.producer(client_id="shop"), java.producer(client_id="other")
    for producer in (shop, other):
        java.send(producer, {"value": "v"}, topic=topic)
    wait_until(lambda: bool(kafka.call(lambda cluster: cluster.telemetry.pushes)))
    found = kafka.call(lambda cluster: list(cluster.telemetry.points()))
    assert {push.attributes["client_id"] for push, _ in found} == {"shop"}
    assert {push.attributes["client_software_name"] for push, _ in found} == {"apache-kafka-java"}
    names = {point.name for _, point in found}
    assert "org.apache.kafka.producer.connection.creation.total" in names
    assert all(name.startswith("org.apache.kafka.producer.connection.") for name in names)
    compressed = {push.compression for push, _ in found}
    assert compressed == {4}  # zstd, which the brokers like best
