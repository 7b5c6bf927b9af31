"""Batches as librdkafka sent them over the wire: read, and built again to the same bytes."""

from __future__ import annotations

import confluent_kafka
import pytest

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.records import (
    BatchHeader,
    CompressionType,
    batch_payload,
    build_batch,
    check_crc,
    compress,
    iter_records,
    recompress,
)


def captured(mock_kafka: Cluster, codec: str, *, idempotent: bool) -> bytes:
    """One batch of 50 records that librdkafka produced, as a fetch returns it."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": mock_kafka.bootstrap_servers,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            # All records are in the queue before the first batch is made: until the flush.
            "linger.ms": 60_000,
        }
    )
    mock_kafka.topic("t").create()
    # Of a topic that it does not know, the client would assign records to partitions one by one
    # while it is flushing, and send the first ones before it has come to the last.
    producer.list_topics("t", 30)
    for number in range(50):
        producer.produce(
            "t",
            key=None if number % 3 else b"key",
            value=None if number % 7 == 6 else b"value " * number,
            headers=[("h", b"x"), ("n", None)] if number % 2 else None,
            timestamp=1_700_000_000_000 + number,
        )
    assert producer.flush(30) == 0
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])])
    with Client(mock_kafka.bootstrap_servers) as client:
        response = client.leader("t", 0).send(request)
    return bytes(response.responses[0].partitions[0].records)


@pytest.mark.covers("S318", "S326")
@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("codec", list(CompressionType))
def test_librdkafka_s_batches_are_read_and_built_again_to_the_same_bytes(
    mock_kafka: Cluster, codec: CompressionType, idempotent: bool
):
    batch = captured(mock_kafka, codec.name.lower(), idempotent=idempotent)
    header = BatchHeader(batch)
    check_crc(batch)
    assert (header.codec, header.size, header.count) == (codec, len(batch), 50)
    assert header.has_producer_id is idempotent
    records = list(iter_records(header, batch))
    assert [record.offset for record in records] == [*range(50)]
    assert records[13].headers == (("h", b"x"), ("n", None))
    assert records[6].value is None
    assert records[3].key == b"key"
    # Compressors differ in their bytes, so what is compared is what they pack.
    rebuilt = build_batch(
        records,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    assert rebuilt == recompress(batch, CompressionType.NONE)
    assert batch_payload(header, batch) == batch_payload(BatchHeader(rebuilt), rebuilt)


def test_librdkafka_and_we_choose_different_snappy_framings(mock_kafka: Cluster):
    batch = captured(mock_kafka, "snappy", idempotent=False)
    assert batch[61:69] != b"\x82SNAPPY\0"
    payload = batch_payload(BatchHeader(batch), batch)
    assert bytes(compress(CompressionType.SNAPPY, payload)).startswith(b"\x82SNAPPY\0")
