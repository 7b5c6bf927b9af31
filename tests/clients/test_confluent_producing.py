"""confluent-kafka's producer as the brokers see it: batches, ids, connections, partitions."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.records import BatchHeader, CompressionType, iter_records
from mockbroker_protocol.records.record import batch_payload
from tests.support.librdkafka import (
    LINGER_MS,
    TIMEOUT_S,
    Delivery,
    addresses,
    admin_client,
    flush,
    produce,
    read_all,
    settings,
    values,
)
from tests.support.request_log import Exchange, RequestLog

# librdkafka asks for these before anything else, wherever it connects.
GREETINGS = {ApiKey.API_VERSIONS, ApiKey.METADATA}


def batches(kafka: Cluster, topic: str, partition: int = 0) -> list[bytes]:
    """The batches of a partition as they are stored."""
    return kafka.call(
        lambda cluster: [
            bytes(batch) for batch in cluster.topics[topic].partitions[partition].log.batches()
        ]
    )


def counts(kafka: Cluster, topic: str) -> list[int]:
    """How many records each partition holds."""
    return kafka.call(
        lambda cluster: [each.log_end_offset for each in cluster.topics[topic].partitions]
    )


def sent_batches(produced: Iterable[Exchange]) -> list[tuple[int, bytes]]:
    """(partition, batch) of every Produce. What the broker numbers (first offset, leader epoch) is
    its own; the checksum and all behind it is as it came.
    """
    return [
        (data.index, bytes(data.records))
        for each in produced
        for topic in each.request.topic_data
        for data in topic.partition_data
    ]


CRC_AT = 17


# -- connections -----------------------------------------------------------------------------------


@pytest.mark.covers("S91", "S322")
def test_one_live_broker_of_the_bootstrap_list_is_enough(kafka: Cluster) -> None:
    """Each of them describes the whole cluster, under the brokers' real ids."""
    brokers = {node_id: kafka.endpoint(node_id) for node_id in (1, 2, 3)}
    for node_id in brokers:
        client = admin_client(f"127.0.0.1:1,{addresses(kafka, node_id)}")
        found = client.list_topics(timeout=TIMEOUT_S).brokers
        assert {node.id: (node.host, node.port) for node in found.values()} == brokers


@pytest.mark.covers("S92", "S305")
def test_a_client_is_known_by_its_id_and_its_software(kafka: Cluster, log: RequestLog) -> None:
    produce(kafka.bootstrap_servers, "t", ["v"], client_id="DemoProducer")
    produce(kafka.bootstrap_servers, "t", ["v"], client_id="producer-1")
    for client_id in ("DemoProducer", "producer-1"):
        [produced] = log.of(ApiKey.PRODUCE, client_id=client_id)
        assert produced.software.startswith("confluent-kafka-python ")
        assert {each.api for each in log.of(client_id=client_id)} == {*GREETINGS, ApiKey.PRODUCE}


@pytest.mark.covers("S118")
@pytest.mark.mock_kafka(topics={})
def test_a_producer_writes_to_leaders_only(kafka: Cluster, log: RequestLog) -> None:
    """Broker 3 leads the only partition: the others are asked for metadata at most."""
    admin = admin_client(kafka.bootstrap_servers)
    new = NewTopic("led-by-3", 1, replica_assignment=[[3]])
    admin.create_topics([new])["led-by-3"].result(TIMEOUT_S)
    log.clear()
    produce(kafka.bootstrap_servers, "led-by-3", map(str, range(100)), client_id="writer")
    by_node = defaultdict(set)
    for each in log.of(client_id="writer"):
        by_node[each.node_id].add(each.api)
    assert by_node.pop(3) >= {ApiKey.PRODUCE}
    for apis in by_node.values():
        assert apis <= GREETINGS


@pytest.mark.covers("S119")
def test_one_producer_serves_many_threads_and_many_serve_one_each(
    kafka: Cluster, log: RequestLog
) -> None:
    """Shared: one producer id. Separate: one each, and the end of one does not touch the others."""
    config = settings(kafka.bootstrap_servers, enable_idempotence=True, linger_ms=5)

    def write(producer: Producer, topic: str) -> None:
        for n in range(50):
            producer.produce(topic, str(n), partition=0)
        flush(producer)

    def in_threads(producers: list[Producer], topic: str) -> None:
        threads = [threading.Thread(target=write, args=(each, topic)) for each in producers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def producer_ids(topic: str) -> set[int]:
        return {BatchHeader(batch).producer_id for batch in batches(kafka, topic)}

    kafka.topic("shared").create()
    kafka.topic("separate").create()
    in_threads([Producer(config)] * 8, "shared")
    assert len(kafka.expect_records("shared", 400)) == 400
    assert len(producer_ids("shared")) == 1
    separate = [Producer(config) for _ in range(8)]
    in_threads(separate, "separate")
    separate.pop()
    in_threads(separate, "separate")
    assert len(kafka.expect_records("separate", 750)) == 750
    assert len(producer_ids("separate")) == 8
    given = {each.response.producer_id for each in log.of(ApiKey.INIT_PRODUCER_ID)}
    assert given == producer_ids("shared") | producer_ids("separate")


@pytest.mark.covers("S148")
@pytest.mark.mock_kafka(configs={"connections.max.idle.ms": 300})
def test_idle_connections_are_closed_and_opened_again_unnoticed(kafka: Cluster) -> None:
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=0))
    delivery = Delivery()
    producer.produce("t", "before", partition=0, on_delivery=delivery)
    flush(producer)
    stats = kafka.server.stats
    deadline = time.monotonic() + TIMEOUT_S
    while stats.connections_closed < 1:
        assert time.monotonic() < deadline
        producer.poll(0.05)
    producer.produce("t", "after", partition=0, on_delivery=delivery)
    flush(producer)
    assert (delivery.errors, delivery.offsets) == ([], [0, 1])


# -- batches ---------------------------------------------------------------------------------------


@pytest.mark.covers("S99")
@pytest.mark.parametrize(("acks", "on_wire"), [(0, 0), (1, 1), ("all", -1)])
def test_acks_are_asked_for_and_0_is_not_answered(
    kafka: Cluster, log: RequestLog, acks: object, on_wire: int
) -> None:
    produce(kafka.bootstrap_servers, "t", map(str, range(10)), acks=acks)
    produced = log.wait_for(ApiKey.PRODUCE)
    assert {each.request.acks for each in produced} == {on_wire}
    answered = {hasattr(each.response, "responses") for each in produced}
    assert answered == {acks != 0}
    kafka.expect_records("t", 10)


@pytest.mark.covers("S106")
def test_linger_and_batch_size_decide_how_many_batches_there_are(kafka: Cluster) -> None:
    """1,000 records, flushed after every ten without linger; and by size with linger."""
    for topic in ("eager", "lingering"):
        kafka.topic(topic).create()
    eager = Producer(settings(kafka.bootstrap_servers, linger_ms=0))
    for n in range(1000):
        eager.produce("eager", f"value {n} " + "x" * 90, partition=0)
        if n % 10 == 9:
            flush(eager)
    lingering = Producer(
        settings(
            kafka.bootstrap_servers, linger_ms=LINGER_MS, batch_size=16_384, compression_type="none"
        )
    )
    for n in range(1000):
        lingering.produce("lingering", f"value {n} " + "x" * 90, partition=0)
    flush(lingering)
    many, few = batches(kafka, "eager"), batches(kafka, "lingering")
    assert len(many) >= 100 > len(few)
    assert all(len(batch) <= 16_384 for batch in few)
    assert sum(BatchHeader(batch).count for batch in few) == 1000


@pytest.mark.covers("S116", "S252")
def test_batches_of_an_idempotent_producer_are_numbered(kafka: Cluster, log: RequestLog) -> None:
    """Each begins at the sequence behind the one before; there are no markers between them."""
    config = {"enable_idempotence": True, "batch_num_messages": 7}
    produce(kafka.bootstrap_servers, "t", map(str, range(100)), **config)
    [given] = log.of(ApiKey.INIT_PRODUCER_ID)
    assert given.response.producer_id >= 0
    assert given.response.producer_epoch == 0
    headers = [BatchHeader(batch) for batch in batches(kafka, "t")]
    assert {(each.producer_id, each.producer_epoch) for each in headers} == {
        (given.response.producer_id, 0)
    }
    assert len(headers) > 10
    assert [each.base_sequence for each in headers] == [each.base_offset for each in headers]
    assert sum(each.count for each in headers) == 100
    assert not any(each.is_control or each.is_transactional for each in headers)


@pytest.mark.covers("S157", "S318")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_stored_and_fetched_as_they_were_sent(
    kafka: Cluster, log: RequestLog, codec: str
) -> None:
    """From the checksum on every byte is the producer's own."""
    sent = [f"value {n} " * 9 for n in range(200)]
    produce(kafka.bootstrap_servers, "t", sent, compression_type=codec)
    assert values(read_all(kafka.bootstrap_servers, "t", 200)) == sent
    produced = [batch[CRC_AT:] for _, batch in sent_batches(log.of(ApiKey.PRODUCE))]
    stored = batches(kafka, "t")
    fetched = b"".join(
        joined(data.records)
        for each in log.of(ApiKey.FETCH)
        for topic in each.response.responses
        for data in topic.partitions
    )
    assert [batch[CRC_AT:] for batch in stored] == produced
    assert b"".join(stored) == fetched
    assert {BatchHeader(batch).codec for batch in stored} == {CompressionType[codec.upper()]}


def joined(records: object) -> bytes:
    """The records of a response, which may be scattered over several buffers."""
    if records is None:
        return b""
    if isinstance(records, bytes | bytearray | memoryview):
        return bytes(records)
    return b"".join(map(bytes, records))  # type: ignore[call-overload]


@pytest.mark.covers("S102")
@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "uncompressed"])
def test_a_topic_of_another_codec_is_recompressed(
    kafka: Cluster, log: RequestLog, codec: str
) -> None:
    """The records are the same, the batch has the topic's codec."""
    kafka.topic("other").create(configs={"compression.type": codec})
    kafka.topic("same").create(configs={"compression.type": "producer"})
    sent = [f"value {n} " * 9 for n in range(200)]
    for topic in ("other", "same"):
        produce(kafka.bootstrap_servers, topic, sent, compression_type="lz4")
        assert values(read_all(kafka.bootstrap_servers, topic, 200)) == sent
    expected = CompressionType["NONE" if codec == "uncompressed" else codec.upper()]
    assert {BatchHeader(batch).codec for batch in batches(kafka, "other")} == {expected}
    assert {BatchHeader(batch).codec for batch in batches(kafka, "same")} == {CompressionType.LZ4}
    for batch in batches(kafka, "other"):
        assert len(list(iter_records(BatchHeader(batch), batch))) == BatchHeader(batch).count
        assert b"value" in bytes(batch_payload(BatchHeader(batch), batch))


@pytest.mark.covers("S107")
def test_a_record_above_the_clients_own_limit_is_never_sent(
    kafka: Cluster, log: RequestLog
) -> None:
    producer = Producer(settings(kafka.bootstrap_servers, message_max_bytes=2000))
    with pytest.raises(KafkaException) as failure:
        producer.produce("t", "x" * 3000)
    assert failure.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    flush(producer)
    assert log.of(ApiKey.PRODUCE) == []


@pytest.mark.covers("S97")
def test_records_in_a_killed_clients_buffer_are_lost(kafka: Cluster) -> None:
    """Of 200 "sent" only the 100 that were flushed have reached the broker."""
    program = f"""
import os
from confluent_kafka import Producer
producer = Producer({{"bootstrap.servers": "{kafka.bootstrap_servers}", "linger.ms": 60000}})
for n in range(100):
    producer.produce("t", f"flushed {{n}}")
producer.flush()
for n in range(100):
    producer.produce("t", f"buffered {{n}}")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    stored = kafka.expect_records("t", 100)
    assert {record.value[:7] for record in stored} == {b"flushed"}


# -- partitions ------------------------------------------------------------------------------------


@pytest.mark.covers("S109")
def test_murmur2_is_javas_partitioner_and_crc32_is_librdkafkas_own(kafka: Cluster) -> None:
    keys = [b"haha", b"hehe", b"eeee", *(n.to_bytes(4, "big") for n in range(8))]

    def placed(partitioner: str) -> list[int]:
        producer = Producer(settings(kafka.bootstrap_servers, partitioner=partitioner))
        delivery: dict[bytes, int] = {}

        def delivered(error: object, message: object) -> None:
            assert error is None
            delivery[message.key()] = message.partition()

        for key in keys:
            producer.produce("t", "v", key=key, on_delivery=delivered)
        flush(producer)
        return [delivery[key] for key in keys]

    as_java = [0, 1, 3, 0, 0, 3, 3, 3, 2, 3, 3]
    assert placed("murmur2_random") == as_java
    assert placed("consistent_random") != as_java


@pytest.mark.covers("S110")
def test_records_without_key_stick_to_a_partition_for_a_while(kafka: Cluster) -> None:
    """Each partition gets a share in the end, but batches hold neighbours, not every fourth."""
    producer = Producer(settings(kafka.bootstrap_servers, sticky_partitioning_linger_ms=1))
    for n in range(10_000):
        producer.produce("t", str(n))
        if n % 100 == 99:
            flush(producer)
    shares = counts(kafka, "t")
    assert sum(shares) == 10_000
    assert min(shares) > 0
    assert shares != [2500] * 4
    together = sum(
        int(after.value or b"") - int(before.value or b"") == 1
        for p in range(4)
        for before, after in pairwise(kafka.records("t", p))
    )
    assert together > 9000


@pytest.mark.covers("S110")
def test_taking_turns_gives_each_partition_the_same(kafka: Cluster) -> None:
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=5))
    for n in range(10_000):
        producer.produce("t", str(n), partition=n % 4)
    flush(producer)
    assert counts(kafka, "t") == [2500] * 4


@pytest.mark.covers("S47")
def test_order_holds_within_a_partition(kafka: Cluster) -> None:
    """So it holds for each key, and for all records of a topic with one partition only."""
    kafka.topic("one").create()
    producer = Producer(settings(kafka.bootstrap_servers, linger_ms=1))
    for n in range(2000):
        producer.produce("t", str(n), key=f"key {n % 20}")
        producer.produce("one", str(n), key=f"key {n % 20}")
    flush(producer)
    by_key: defaultdict[bytes | None, list[int]] = defaultdict(list)
    everything = kafka.records("t")
    for record in everything:
        by_key[record.key].append(int(record.value or b""))
    assert len(by_key) == 20
    for key, numbers in by_key.items():
        assert numbers == sorted(numbers), key
    across = [int(record.value or b"") for record in everything]
    assert across != sorted(across)
    assert [int(record.value or b"") for record in kafka.records("one")] == list(range(2000))


@pytest.mark.covers("S25", "S29", "S96")
def test_appends_of_many_producers_to_one_partition_are_put_in_one_line(kafka: Cluster) -> None:
    """Eight times 1,000 records: all offsets differ, none is left out, each producer's order is
    its own, and reports come in that order.
    """
    producers = [Producer(settings(kafka.bootstrap_servers, linger_ms=1)) for _ in range(8)]
    deliveries = [Delivery() for _ in producers]
    for n in range(1000):
        for number, (producer, delivery) in enumerate(zip(producers, deliveries, strict=True)):
            producer.produce("t", f"{number} {n}", partition=0, on_delivery=delivery)
    for producer in producers:
        flush(producer)
    told = Counter(offset for delivery in deliveries for offset in delivery.offsets)
    assert told == Counter(range(8000))
    stored = [(record.value or b"").decode().split() for record in kafka.records("t", 0)]
    for number, delivery in enumerate(deliveries):
        assert delivery.errors == []
        assert delivery.offsets == sorted(delivery.offsets)
        assert [int(n) for by, n in stored if int(by) == number] == list(range(1000))
