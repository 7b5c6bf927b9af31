"""A state too large for each transaction: whole snapshots now and then, small ones in between.

The whole goes to "full" by a producer without transactions, for its offset is only known when it
is stored. Each transaction says in "increments" which whole is meant, and where the input stands.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from mockbroker import Cluster
from tests.support.librdkafka import produce, read_all, values

TARGET, FULL = TopicPartition("target", 0), TopicPartition("full", 0)
INCREMENTS = TopicPartition("increments", 0)

pytestmark = pytest.mark.mock_kafka(
    brokers=1, topics={"target": 1, "full": 1, "increments": 1, "results": 1}
)


class Program:
    """Sums up its input and tells each sum; a context manager that starts it."""

    def __init__(self, kafka: Cluster) -> None:
        settings = {"bootstrap_servers": kafka.bootstrap_servers, "retry_backoff_ms": 10}
        self.producer = AIOKafkaProducer(transactional_id="program", **settings)
        self.plain = AIOKafkaProducer(**settings)
        self.consumer = AIOKafkaConsumer(
            isolation_level="read_committed", fetch_max_wait_ms=20, **settings
        )
        self.full = -1
        self.next = self.sum = 0
        self.recomputed = 0

    async def __aenter__(self) -> Self:
        for client in (self.producer, self.plain, self.consumer):
            await client.start()
        await self.restore()
        return self

    async def __aexit__(self, *error: object) -> None:
        for client in (self.producer, self.plain, self.consumer):
            await client.stop()

    async def read(self, partition: TopicPartition, start: int, end: int) -> list[Any]:
        """The records of a range of offsets."""
        self.consumer.assign([partition])
        self.consumer.seek(partition, start)
        found: list[Any] = []
        while await self.consumer.position(partition) < end:
            batches = await self.consumer.getmany(timeout_ms=20, max_records=end - start)
            found += batches.get(partition, [])
        return [record for record in found if record.offset < end]

    async def restore(self) -> None:
        """Load the whole, and do again what came since, in memory alone."""
        end = (await self.consumer.end_offsets([INCREMENTS]))[INCREMENTS]
        increments = await self.read(INCREMENTS, max(0, end - 2), end)
        until = 0
        if increments:
            self.full, until = json.loads(increments[-1].value)
        if self.full >= 0:
            [whole] = await self.read(FULL, self.full, self.full + 1)
            self.next, self.sum = json.loads(whole.value)
        for record in await self.read(TARGET, self.next, until):
            self.sum += int(record.value)
            self.recomputed += 1
        self.next = max(self.next, until)

    async def work(self, until: int) -> None:
        """One transaction: the results, and where the input stands."""
        records = await self.read(TARGET, self.next, until)
        async with self.producer.transaction():
            for record in records:
                self.sum += int(record.value)
                await self.send(self.producer, "results", self.sum)
            self.next = until
            await self.send(self.producer, "increments", [self.full, self.next])

    async def snapshot(self) -> int:
        """Write the whole; from the next transaction on it is the one that counts."""
        sent = await self.send(self.plain, "full", [self.next, self.sum])
        self.full = (await sent).offset
        return self.full

    async def send(self, producer: AIOKafkaProducer, topic: str, value: object) -> Any:
        return await producer.send(topic, json.dumps(value).encode(), partition=0)


def run(kafka: Cluster, *lives: Callable[[Program], Awaitable[None]]) -> None:
    """One life after the other, each of a program of its own that ends without a word."""

    async def main() -> None:
        for live in lives:
            async with Program(kafka) as program:
                await live(program)

    produce(kafka.bootstrap_servers, "target", ["1"] * 1010)
    asyncio.run(main())


def results(kafka: Cluster, count: int) -> list[int]:
    found = read_all(kafka.bootstrap_servers, "results", count)
    return [json.loads(value) for value in values(found)]


@pytest.mark.covers("S260", "S262")
def test_only_what_came_since_the_whole_is_done_again(kafka: Cluster) -> None:
    """The whole stands at 1,000 and the last increment at 1,001: one record, and no result."""

    async def first(program: Program) -> None:
        await program.work(1000)
        assert await program.snapshot() == 0
        await program.work(1001)

    async def second(program: Program) -> None:
        assert (program.full, program.next, program.sum) == (0, 1001, 1001)
        assert program.recomputed == 1
        assert len(kafka.records("results")) == 1001
        await program.work(1010)

    run(kafka, first, second)
    assert results(kafka, 1010) == [*range(1, 1011)]


@pytest.mark.covers("S260", "S262")
def test_without_a_whole_everything_is_done_again(kafka: Cluster) -> None:
    async def first(program: Program) -> None:
        await program.work(1000)
        await program.work(1001)

    async def second(program: Program) -> None:
        assert (program.recomputed, program.sum) == (1001, 1001)
        assert len(kafka.records("results")) == 1001

    run(kafka, first, second)


@pytest.mark.covers("S261")
def test_a_whole_that_no_transaction_names_does_not_count(kafka: Cluster) -> None:
    """The program dies between the two: the older pair fits as well."""

    async def first(program: Program) -> None:
        await program.work(1000)
        await program.snapshot()
        await program.work(1005)
        assert await program.snapshot() == 1

    async def second(program: Program) -> None:
        assert (program.full, program.recomputed) == (0, 5)
        assert (program.next, program.sum) == (1005, 1005)
        await program.snapshot()
        await program.work(1010)
        assert program.full == 2

    run(kafka, first, second)
    assert results(kafka, 1010) == [*range(1, 1011)]
