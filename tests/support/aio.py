"""aiokafka in few words, and tests that are coroutines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.support.python_clients import run

P = ParamSpec("P")

TIMEOUT_S = 20.0


def asynchronous(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Let a coroutine be a test, with an event loop of its own."""

    @wraps(test)
    def synchronous(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return synchronous


@asynccontextmanager
async def open_consumer(
    bootstrap: str, *topics: str, **config: Any
) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer that starts at the earliest offset and commits only when told to."""
    defaults = {
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 100,
        "fetch_max_wait_ms": 100,
    }
    async with AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, **(defaults | config)
    ) as consumer:
        yield consumer


@asynccontextmanager
async def assigned(
    bootstrap: str, topic: str, *partitions: int, **config: Any
) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of these partitions (or of 0), without a group's help."""
    async with open_consumer(bootstrap, **config) as consumer:
        consumer.assign([TopicPartition(topic, p) for p in partitions or (0,)])
        yield consumer


async def fill(
    bootstrap: str, topic: str, values: Iterable[str], partition: int = 0, **config: Any
) -> list[int]:
    """Produce; returns the offsets that the broker told."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **config) as producer:
        futures = [
            await producer.send(topic, value.encode(), partition=partition) for value in values
        ]
        return [(await future).offset for future in futures]


async def poll(consumer: AIOKafkaConsumer, count: int, timeout_s: float = TIMEOUT_S) -> list[Any]:
    """`count` records, or fewer after the timeout."""
    deadline = time.monotonic() + timeout_s
    found: list[Any] = []
    while len(found) < count and (left_s := deadline - time.monotonic()) > 0:
        batches = await consumer.getmany(
            timeout_ms=int(left_s * 1000) + 1, max_records=count - len(found)
        )
        for records in batches.values():
            found.extend(records)
    return found


def values(records: Iterable[Any]) -> list[str]:
    return [record.value.decode() for record in records]


def offsets(records: Iterable[Any]) -> list[int]:
    return [record.offset for record in records]


async def settle(*consumers: AIOKafkaConsumer, partitions: int = 4) -> list[list[int]]:
    """Wait until these consumers share all partitions of a topic; returns the shares."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        shares = [sorted(tp.partition for tp in consumer.assignment()) for consumer in consumers]
        if all(shares) and sorted(p for share in shares for p in share) == list(range(partitions)):
            return shares
        assert time.monotonic() < deadline, shares
        await asyncio.gather(*(consumer.getmany(timeout_ms=50) for consumer in consumers))


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it holds: in a real cluster, what a controller did takes time to spread."""
    deadline = time.monotonic() + TIMEOUT_S
    while not await condition():
        assert time.monotonic() < deadline, "the condition did not come to hold"
