"""The Python clients behind one face: write records, read them all.

    for client in CLIENTS: client.write(bootstrap_servers, "orders", [Sent(b"v")], codec="zstd")

What only one of them can do is in its own tests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

TIMEOUT_S = 20.0
# Long enough for all records of one test to share a batch.
LINGER_MS = 50

Headers = tuple[tuple[str, bytes | None], ...]


class Sent(NamedTuple):
    """A record to write."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int = 0
    timestamp_ms: int | None = None


class Got(NamedTuple):
    """A record as it was read; times in ms."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class PythonClient(Protocol):
    """A client library."""

    name: str

    def write(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none"
    ) -> list[int]:
        """Produce with acks=all and wait for all; return the offsets in the records' order."""

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        """Read `count` records from the start of all partitions, by partition and offset.

        Raises AssertionError when fewer come in time.
        """


def run(coroutine: Coroutine[Any, Any, T], timeout_s: float = 2 * TIMEOUT_S) -> T:
    """Run a coroutine to its end. Raises TimeoutError when it hangs."""

    async def limited() -> T:
        return await asyncio.wait_for(coroutine, timeout_s)

    return asyncio.run(limited())


class ConfluentKafka:
    name = "confluent-kafka"

    def write(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none"
    ) -> list[int]:
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": LINGER_MS}
        )
        offsets: dict[int, int] = {}
        errors: list[object] = []
        for number, record in enumerate(records):

            def delivered(error: object, message: Any, number: int = number) -> None:
                if error is not None:
                    errors.append(error)
                offsets[number] = message.offset()

            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=delivered,
                timestamp=record.timestamp_ms or 0,
                headers=list(record.headers),
            )
        assert producer.flush(TIMEOUT_S) == 0
        assert errors == []
        return [offsets[number] for number in range(len(records))]

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
        try:
            partitions = consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions
            consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
            messages = consumer.consume(count, TIMEOUT_S)
        finally:
            consumer.close()
        assert [message.error() for message in messages] == [None] * count
        return sorted(
            Got(
                message.partition(),
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                tuple(message.headers() or ()),
            )
            for message in messages
        )


class KafkaPython:
    name = "kafka-python"

    def write(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none"
    ) -> list[int]:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
            linger_ms=LINGER_MS,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            return [future.get(TIMEOUT_S).offset for future in futures]
        finally:
            producer.close()

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        found: list[Got] = []
        try:
            partitions = consumer.partitions_for_topic(topic)
            consumer.assign([TopicPartition(topic, p) for p in partitions])
            deadline = time.monotonic() + TIMEOUT_S
            while len(found) < count and time.monotonic() < deadline:
                for batch in consumer.poll(timeout_ms=1000).values():
                    found.extend(map(_got, batch))
        finally:
            consumer.close()
        assert len(found) == count
        return sorted(found)


class AioKafka:
    name = "aiokafka"

    def write(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none"
    ) -> list[int]:
        from aiokafka import AIOKafkaProducer

        async def write() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks="all",
                linger_ms=LINGER_MS,
            )
            async with producer:
                futures = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                return [(await future).offset for future in futures]

        return run(write())

    def read(self, bootstrap: str, topic: str, count: int) -> list[Got]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        async def read() -> list[Got]:
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
            found: list[Got] = []
            async with consumer:
                metadata = await consumer._client.fetch_all_metadata()
                partitions = metadata.partitions_for_topic(topic)
                consumer.assign([TopicPartition(topic, p) for p in partitions])
                deadline = time.monotonic() + TIMEOUT_S
                while len(found) < count and time.monotonic() < deadline:
                    for batch in (await consumer.getmany(timeout_ms=1000)).values():
                        found.extend(map(_got, batch))
            assert len(found) == count
            return sorted(found)

        return run(read())


def _got(record: Any) -> Got:
    """kafka-python and aiokafka give their records the same attributes."""
    return Got(
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
    )


CLIENTS: tuple[PythonClient, ...] = (ConfluentKafka(), KafkaPython(), AioKafka())
