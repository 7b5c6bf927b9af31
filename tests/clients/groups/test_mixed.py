"""Members of different makes in one group: the broker passes on what they agree on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AsyncRange
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from mockbroker import Cluster
from tests.support.kafka_python import polled_aside, subscribe
from tests.support.members import Members, look
from tests.support.watched import fill

ATTEMPTS = 5
NAMES = ("a-librdkafka", "b-kafka-python", "c-aiokafka")


class AsyncMember:
    """An aiokafka consumer of group "g" in a thread of its own."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._ended = threading.Event()
        self.values: list[str] = []
        self.thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self.thread.start()

    async def _main(self) -> None:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=self._bootstrap_servers,
            group_id="g",
            client_id=NAMES[2],
            auto_offset_reset="earliest",
            heartbeat_interval_ms=50,
            partition_assignment_strategy=[AsyncRange],
        )
        await consumer.start()
        try:
            while not self._ended.is_set():
                for records in (await consumer.getmany(timeout_ms=20)).values():
                    self.values += [record.value.decode() for record in records]
        finally:
            await consumer.stop()

    def close(self) -> None:
        self._ended.set()
        self.thread.join()


@pytest.fixture
def python(kafka: Cluster) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="g",
        client_id=NAMES[1],
        auto_offset_reset="earliest",
        heartbeat_interval_ms=50,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    subscribe(consumer, "t")
    yield consumer
    consumer.close()


@pytest.mark.covers("S186", "S206")
@pytest.mark.mock_kafka(topics={"t": 6})
def test_three_makes_of_clients_share_a_topic(
    kafka: Cluster, members: Members, python: KafkaConsumer
) -> None:
    """librdkafka, kafka-python and aiokafka: two partitions each, every record to one of them; when
    two have left, the last one has everything.
    """
    native = members("g", "t", client_id=NAMES[0], partition_assignment_strategy="range")

    def shared() -> bool:
        found = look(kafka, "g")
        return found.state == "Stable" and {
            n: len(p) for n, p in found.owned.items()
        } == dict.fromkeys(NAMES, 2)

    with closing(AsyncMember(kafka.bootstrap_servers)) as other, polled_aside(python) as records:

        def by_member(values: list[str]) -> list[list[str]]:
            """Which of these values each member has read."""
            read = [record.value.decode() for record in records]
            return [
                [v for v in got if v in values] for got in (native.values(), read, other.values)
            ]

        for attempt in range(ATTEMPTS):
            members.until(shared)
            before = look(kafka, "g")
            values = fill(kafka, "t", 60, first=60 * attempt)

            def all_read(values: list[str] = values) -> bool:
                return set(values) <= {value for got in by_member(values) for value in got}

            members.until(all_read)
            # Only within a generation does each record go to one member: a client that was slow
            # to send its heartbeats is left out, and another one reads anew what it had not
            # committed.
            if look(kafka, "g") == before:
                break
        assert look(kafka, "g") == before, "the group does not come to rest"
        assert before.owned[NAMES[0]] == [("t", 0), ("t", 1)]
        assert [len(got) for got in by_member(values)] == [20, 20, 20]
    python.close()
    members.settle(native, partitions=6)
