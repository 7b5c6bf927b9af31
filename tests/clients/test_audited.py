"""Recipes, and what the audit says of them: producers that lose nothing, pools that lose."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from confluent_kafka import Consumer, Message, Producer

from mockbroker import Cluster
from tests.support.librdkafka import TIMEOUT_S, Delivery, open_consumer, poll, produce, settings
from tests.support.waiting import wait_until

SEED = 115
KILLS = 12
RECORDS = 3_000


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, configs={"min.insync.replicas": 2}) as cluster:
        yield cluster


def catch_up(producer: Producer, delivery: Delivery, count: int) -> None:
    """Wait until so many records are reported."""

    def reported() -> bool:
        producer.poll(0.01)
        return len(delivery.messages) >= count

    wait_until(reported, what=f"the report of {count} records")


@pytest.mark.covers("S115")
def test_a_producer_that_loses_nothing(kafka: Cluster) -> None:
    """acks=all, retries without end, three replicas, two of them in sync at least, no unclean
    elections, idempotence. Meanwhile brokers are killed and come back, chosen by chance, sometimes
    two at a time; the times between are the producer's, not 60 s of the clock.
    """
    kafka.topic("orders").create(3, 3)
    draw = Random(SEED)
    delivery = Delivery()
    producer = Producer(
        settings(
            kafka.bootstrap_servers,
            acks="all",
            enable_idempotence=True,
            message_send_max_retries=2**31 - 1,
            message_timeout_ms=300_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=100,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
            linger_ms=1,
            batch_num_messages=20,
        )
    )
    down: list[int] = []
    for number in range(RECORDS):
        producer.produce("orders", str(number), partition=number % 3, on_delivery=delivery)
        if number % (RECORDS // (2 * KILLS)) == 0:
            if len(down) < 2:  # or else nothing can be acknowledged
                catch_up(producer, delivery, number - RECORDS // KILLS)
            if len(down) == 2 or (down and draw.random() < 0.6):
                kafka.broker(down.pop(0)).start()
            else:
                victim = draw.choice([n for n in (1, 2, 3) if n not in down])
                kafka.broker(victim).stop(how="unclean")
                down.append(victim)
    for node_id in down:
        kafka.broker(node_id).start()
    kafka.settle()
    assert producer.flush(60) == 0
    assert (delivery.errors, len(delivery.messages)) == ([], RECORDS)
    kafka.journal.at_least(KILLS // 2, kind="broker", change="stopped")
    values = sorted(int(each.value or b"-1") for each in kafka.records("orders"))
    assert values == list(range(RECORDS))
    kafka.audit().assert_no("lost_write", "duplicate")


def processed(message: Message) -> dict[str, object]:
    """What an application tells the audit."""
    return {
        "op": "processed",
        "group": "pool",
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
    }


@pytest.mark.covers("S155")
def test_a_thread_for_each_consumer_keeps_the_order_of_partitions(kafka: Cluster) -> None:
    """Each commits what it has processed, and nothing is committed that was not."""
    kafka.topic("t").create(2, 3)
    for partition in (0, 1):
        produce(kafka.bootstrap_servers, "t", map(str, range(50)), partition)
    done: dict[int, list[int]] = defaultdict(list)
    operations: list[dict[str, object]] = []
    enough = threading.Event()

    def work() -> None:
        config = {"group_id": "pool", "enable_auto_commit": False, "fetch_wait_max_ms": 50}
        with open_consumer(kafka.bootstrap_servers, **config) as consumer:
            consumer.subscribe(["t"])
            while not enough.is_set():
                message = consumer.poll(0.05)
                if message is None or message.error() is not None:
                    continue
                done[message.partition() or 0].append(message.offset() or 0)
                operations.append(processed(message))
                consumer.commit(message, asynchronous=False)
                if sum(len(set(each)) for each in done.values()) == 100:
                    enough.set()

    with ThreadPoolExecutor() as threads:
        for thread in [threads.submit(work) for _ in range(2)]:
            thread.result(TIMEOUT_S * 2)
    for offsets in done.values():
        assert list(dict.fromkeys(offsets)) == list(range(50))
    kafka.audit(operations).assert_no("committed_not_processed")


@pytest.mark.covers("S155")
def test_a_pool_behind_one_consumer_loses_what_its_worker_had_when_it_died(kafka: Cluster) -> None:
    """The consumer hands records to workers and commits its position, as if they were done. One
    worker dies; who takes over begins behind the records that it had. The audit finds them.
    """
    kafka.topic("t").create(1, 3)
    produce(kafka.bootstrap_servers, "t", map(str, range(10)))
    operations: list[dict[str, object]] = []

    def worker(message: Message) -> None:
        if message.offset() in (3, 7):
            raise RuntimeError("the worker dies with what it had")
        operations.append(processed(message))

    def run(count: int) -> list[int]:
        consumer = Consumer(
            settings(
                kafka.bootstrap_servers,
                group_id="pool",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
        )
        consumer.subscribe(["t"])
        with ThreadPoolExecutor(4) as workers:
            messages = poll(consumer, count)
            for message in messages:
                workers.submit(worker, message)
            consumer.commit(asynchronous=False)
        consumer.close()
        return [message.offset() or 0 for message in messages]

    assert run(10) == list(range(10))
    produce(kafka.bootstrap_servers, "t", ["10"])
    assert run(1) == [10]
    audit = kafka.audit(operations)
    assert sorted(each.offset or 0 for each in audit.of("committed_not_processed")) == [3, 7]
