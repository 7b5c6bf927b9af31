"""The programs of the docs, killed again and again at random: nothing is lost, nothing is doubled.

A failure prints the seed that repeats it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from mockbroker import Cluster
from tests.support.doc_examples import module
from tests.support.librdkafka import produce, read_all, values

SEEDS = [1]
POINTS = {
    "sqlite": ("read", "billed", "moved", "committed"),
    "worker": ("read", "added", "noted", "committed"),
}


class Died(Exception):  # noqa: N818 - an outcome
    """The program's end at a point of a test's choice."""


class Alone(Consumer):
    """A consumer that has all partitions at once, because nobody else is there to share them."""

    def subscribe(self, topics: list[str], on_assign: Callable[..., None]) -> None:  # type: ignore[override]
        on_assign(self, [TopicPartition(topic, 0) for topic in topics])


@pytest.mark.covers("S257")
@pytest.mark.mock_kafka(brokers=1, topics={"orders": 1})
@pytest.mark.parametrize("seed", SEEDS)
def test_results_and_offsets_in_one_database(kafka: Cluster, tmp_path: Path, seed: int) -> None:
    """A hundred kills."""
    example = module("howto/applications.md", "test_sqlite.py", "orders.py")
    example.Consumer = Alone  # type: ignore[attr-defined]
    orders = [f"order {n}" for n in range(120)]
    example.write(kafka, "orders", orders)
    chance = random.Random(seed)
    path = tmp_path / "bills.db"
    for _ in range(100):
        app = example.App(kafka, path, chance.choice(POINTS["sqlite"]))
        with pytest.raises(example.Died):
            app.run(until=len(orders))
        app.close()
    app = example.App(kafka, path)
    app.run(until=len(orders))
    app.close()
    assert example.billed(path) == orders


def impatient(example: ModuleType) -> ModuleType:
    """The docs' worker with clients that try again sooner than they would by themselves."""
    for name in ("AIOKafkaProducer", "AIOKafkaConsumer"):
        client = getattr(example, name)
        setattr(example, name, functools.partial(client, retry_backoff_ms=10))
    return example


async def work_until_killed(worker: Any, chance: random.Random, payments: int) -> None:
    """Let it pass so many points as chance says, or come to its end."""
    steps = chance.randrange(1, 9)

    def step(point: str) -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise Died(point)

    try:
        await worker.start()
        await worker.work(until=payments, step=step)
    except Died:
        pass
    finally:
        await worker.stop()


@pytest.mark.covers("S256", "S259")
@pytest.mark.mock_kafka(brokers=1, topics={"payments": 1, "sums": 1, "snapshots": 1})
@pytest.mark.parametrize("seed", SEEDS)
def test_results_and_snapshots_in_one_transaction(kafka: Cluster, seed: int) -> None:
    """Fifty kills. Downstream, read_committed gets each sum once; what was aborted is there too."""
    example = impatient(module("howto/applications.md", "worker.py"))
    payments = 100
    chance = random.Random(seed)

    async def run() -> None:
        for _ in range(50):
            await work_until_killed(example.Worker(kafka, 0), chance, payments)
        worker = example.Worker(kafka, 0)
        await worker.start()
        await worker.work(until=payments)
        await worker.stop()

    produce(kafka.bootstrap_servers, "payments", ["1"] * payments)
    asyncio.run(run())
    expected = [*range(1, payments + 1)]
    committed = read_all(kafka.bootstrap_servers, "sums", payments)
    assert [json.loads(value) for value in values(committed)] == expected
    stored = [json.loads(record.value or b"") for record in kafka.records("sums")]
    assert sorted(set(stored)) == expected
    assert len(stored) > payments
