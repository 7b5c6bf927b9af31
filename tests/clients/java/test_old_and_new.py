"""Java clients much older and a little newer than the broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from tests.clients.java.steps import Peer
from tests.support.java_pipe import JavaPipe
from tests.support.waiting import wait_until

pytestmark = pytest.mark.java

VERSIONS = ("2.2.0", "4.4.0")


@pytest.fixture(scope="module", params=VERSIONS)
def client(request: pytest.FixtureRequest) -> Iterator[JavaPipe]:
    with JavaPipe("mockbroker.basic.Basic", ["basic"], f"kafka-clients-{request.param}") as pipe:
        yield pipe


def round_trip(client: JavaPipe, bootstrap: str, compression: str, idempotent: str) -> None:
    """Create a topic, produce to it, and read it in a group that goes on where it stopped."""
    topic = f"{client.pom}-{compression}-{idempotent}"
    client.ask_one("create", bootstrap=bootstrap, topic=topic, partitions=1)
    # The metadata of a real broker may follow a little later.
    wait_until(lambda: topic in client.ask_one("topics", bootstrap=bootstrap)["topics"])

    def produce(values: list[str]) -> list[int]:
        kind = {"compression": compression, "idempotent": idempotent}
        written = client.ask_one("produce", bootstrap=bootstrap, topic=topic, values=values, **kind)
        offsets: list[int] = written["offsets"]
        return offsets

    def consume(count: int) -> list[str]:
        group = f"group of {topic}"
        read = client.ask_one("consume", bootstrap=bootstrap, topic=topic, group=group, count=count)
        values: list[str] = read["values"]
        return values

    values = [f"value {n}" for n in range(100)]
    assert produce(values) == list(range(100))
    assert consume(100) == values
    assert produce(["more"]) == [100]
    assert consume(1) == ["more"]


@pytest.mark.covers("S320", "S327")
@pytest.mark.parametrize("idempotent", ["true", "false"])
@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_a_group_reads_what_a_producer_wrote(
    client: JavaPipe, peer: Peer, compression: str, idempotent: str
) -> None:
    round_trip(client, peer.bootstrap_servers, compression, idempotent)


@pytest.mark.covers("S320", "S327")
@pytest.mark.parametrize("release", ["2.8", "3.3", "3.9", "4.0", "4.1", "4.2"])
def test_they_work_on_every_release_that_we_play(client: JavaPipe, release: str) -> None:
    with Cluster(brokers=1, kafka_version=release) as cluster:
        round_trip(client, cluster.bootstrap_servers, "zstd", "true")
