"""confluent-kafka, kafka-python and aiokafka read what each of the others wrote."""

from __future__ import annotations

import time

import pytest

from mockbroker.client import Client
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.records import BatchHeader, CompressionType, split_batches
from mockbroker_protocol.records.record import batch_payload
from tests.support.python_clients import CLIENTS, Got, PythonClient, Sent

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]

# How a payload begins. librdkafka writes raw snappy, which has no magic; the pure Python clients
# frame it as Java does.
XERIAL = b"\x82SNAPPY\x00"
MAGIC = {"gzip": b"\x1f\x8b", "lz4": b"\x04\x22\x4d\x18", "zstd": b"\x28\xb5\x2f\xfd"}

every_writer = pytest.mark.parametrize("writer", CLIENTS, ids=lambda client: client.name)


def stored_batches(client: Client, topic: str) -> list[tuple[BatchHeader, memoryview]]:
    """Partition 0 of a topic as a consumer is given it, header by header."""
    request = FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)],
            )
        ],
    )
    # The last version that names topics rather than their ids.
    response = client.leader(topic, 0).send(request, 12)
    return list(split_batches(bytearray(response.responses[0].partitions[0].records)))


@pytest.mark.covers("S101", "S318", "S326")
@pytest.mark.parametrize("codec", CODECS)
@every_writer
def test_batches_of_every_codec_are_read_by_all(
    bootstrap_servers: str, name: str, writer: PythonClient, codec: str
) -> None:
    """The batch says its codec and holds the bytes as the producer framed them."""
    values = [b"value %d " % n * 20 for n in range(50)]
    with Client(bootstrap_servers) as client:
        client.topics.create(name, partitions=1)
        sent = writer.write(bootstrap_servers, name, [Sent(value) for value in values], codec)
        batches = stored_batches(client, name)
    assert sent == list(range(50))
    for header, batch in batches:
        assert header.codec == CompressionType[codec.upper()]
        payload = bytes(batch[61:])
        assert payload.startswith(MAGIC.get(codec, b""))
        if codec == "snappy":
            assert payload.startswith(XERIAL) == (writer.name != "confluent-kafka")
        assert b"value" in bytes(batch_payload(header, batch))
    for reader in CLIENTS:
        found = reader.read(bootstrap_servers, name, 50)
        assert [record.value for record in found] == values
        assert [record.offset for record in found] == sent


@pytest.mark.covers("S317")
@every_writer
def test_nulls_headers_partitions_and_timestamps_survive(
    bootstrap_servers: str, name: str, writer: PythonClient
) -> None:
    """A null key or value is not an empty one; headers keep their order and their doubles."""
    now_ms = int(time.time() * 1000) - 10_000
    headers = (("trace", b"1"), ("trace", b"\xff\x00"), ("empty", b""), ("", b"no name"))
    records = [
        Sent(b"v", b"k", headers, 0, now_ms),
        Sent(None, b"dead", (), 0, now_ms + 1),
        Sent(b"", b"", (("h", b"1"),), 1, now_ms + 2),
        Sent(b"no key", None, (), 2, now_ms + 3),
    ]
    with Client(bootstrap_servers) as client:
        client.topics.create(name, partitions=3)
    offsets = writer.write(bootstrap_servers, name, records)
    assert offsets == [0, 1, 0, 0]
    expected = [
        Got(sent.partition, offset, sent.timestamp_ms or 0, sent.key, sent.value, sent.headers)
        for sent, offset in zip(records, offsets, strict=True)
    ]
    for reader in CLIENTS:
        assert reader.read(bootstrap_servers, name, 4) == expected
