"""The client and its batches against Kafka itself, which opens every compressed batch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker.client import Client
from mockbroker_protocol.records import CompressionType, Record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def client(real_bootstrap_servers: str) -> Iterator[Client]:
    with Client(real_bootstrap_servers) as client:
        yield client


@pytest.mark.covers("S326")
@pytest.mark.parametrize("codec", list(CompressionType))
def test_kafka_takes_our_batches_and_we_read_them_back(client: Client, codec: CompressionType):
    topic = f"codec-{codec.name.lower()}"
    client.topics.create(topic, partitions=1)
    records = [
        Record(n, 1_700_000_000_000 + n, b"key", b"value " * n, (("h", None),)) for n in range(200)
    ]
    [produced] = client.produce(topic, records, codec=codec)
    assert produced.base_offset == 0
    assert [found.record for found in client.consume(topic)] == records


def test_kafka_recompresses_our_batches_and_we_read_its_own(client: Client):
    """Whatever Java writes with each codec, we read; whatever we write, Java has read before."""
    for codec in list(CompressionType)[1:]:
        topic = f"recompressed-{codec.name.lower()}"
        configs = {"compression.type": codec.name.lower()}
        client.topics.create(topic, partitions=1, configs=configs)
        values = [b"value %d " % n * 20 for n in range(500)]
        client.produce(topic, values)
        assert [found.record.value for found in client.consume(topic)] == values


def test_groups_and_topics_are_managed(client: Client):
    client.topics.create("managed", partitions=2)
    client.produce("managed", [b"x"] * 10, partition=0)
    client.groups.commit("managing", {("managed", 0): 4})
    assert [(lag.partition, lag.lag) for lag in client.groups.lag("managing")] == [(0, 6)]
    assert client.groups.describe("managing").group_state == "Empty"
    assert "managing" in [group.group_id for group in client.groups.all()]
    client.groups.delete("managing")
    client.topics.delete("managed")

    def is_gone() -> bool:
        """A broker answers before its metadata follows the controller's."""
        return "managed" not in [topic.name for topic in client.topics.all()]

    wait_until(is_gone)
