"""Clients of a soak, of one library: `python -m bench.soak_clients LIBRARY SERVERS STREAM PAUSE_S`.

They use the cluster until standard input ends, whatever is done to them: a client that fails is
closed, and another takes its place. The process prints how much each kind did, as one line of JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import urllib.request
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from bench.soak_lives import (
    ATOMIC,
    TIMEOUT_S,
    TOPIC,
    Pace,
    done,
    ended,
    failed,
    headers,
    settings,
    turns,
)
from bench.soak_members import shared, streams


def idempotent(servers: str, name: str) -> None:
    config = settings(servers, client_id=name, enable_idempotence=True, message_timeout_ms=10_000)
    producer = Producer(config)
    for _ in turns():
        if ended.wait(Pace.pause_s):
            break
        producer.produce(TOPIC, name.encode() * 20, headers=headers())
        producer.poll(0)
        done["idempotent"] += 1
    producer.flush(TIMEOUT_S)


def transactional(servers: str, name: str) -> None:
    config = settings(servers, client_id=name, transactional_id=name, transaction_timeout_ms=10_000)
    producer = Producer(config)
    producer.init_transactions(TIMEOUT_S)
    for turn in turns():
        if ended.wait(Pace.pause_s):
            break
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(ATOMIC, name.encode(), headers=headers())
        if turn % 4:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
        done["transactional"] += 1


def consumer(servers: str, name: str, protocol: str) -> None:
    config = settings(
        servers, client_id=name, group_id=f"{protocol}-{name[-1]}", auto_offset_reset="earliest",
        enable_auto_commit=False, isolation_level="read_committed", group_protocol=protocol,
    )  # fmt: skip
    reader = Consumer(config)
    try:
        reader.subscribe([TOPIC, ATOMIC])
        for _ in turns():
            if ended.is_set():
                break
            messages = [m for m in reader.consume(100, 0.2) if m.error() is None]
            if messages:
                reader.commit(asynchronous=False)
                done[f"consumer-{protocol}"] += len(messages)
    finally:
        reader.close()


def classic(servers: str, name: str) -> None:
    consumer(servers, name, "classic")


def modern(servers: str, name: str) -> None:
    consumer(servers, name, "consumer")


def kafka_python(servers: str, name: str) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, client_id=name, acks="all", retries=5)
    reader = KafkaConsumer(
        TOPIC, bootstrap_servers=servers, client_id=name, group_id="kafka-python",
        auto_offset_reset="earliest", consumer_timeout_ms=100,
    )  # fmt: skip
    try:
        for _ in turns():
            if ended.wait(Pace.pause_s):
                break
            producer.send(TOPIC, name.encode() * 20, headers=headers())
            found = reader.poll(100)
            done["kafka-python"] += 1 + sum(map(len, found.values()))
    finally:
        producer.close(TIMEOUT_S)
        reader.close()


def asynchronous(servers: str, name: str) -> None:
    asyncio.run(_asynchronous(servers, name))


async def _asynchronous(servers: str, name: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers, client_id=name)
    reader = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=servers, client_id=name, group_id="aiokafka",
        auto_offset_reset="earliest",
    )  # fmt: skip
    try:
        await producer.start()
        await reader.start()
        for _ in turns():
            if ended.is_set():
                break
            await producer.send(TOPIC, name.encode() * 20, headers=headers())
            found = await reader.getmany(timeout_ms=50)
            done["aiokafka"] += 1 + sum(map(len, found.values()))
            await asyncio.sleep(Pace.pause_s)
    finally:
        await producer.stop()
        await reader.stop()


def admin(servers: str, name: str) -> None:
    client = AdminClient(settings(servers, client_id=name))
    for _ in turns():
        if ended.wait(Pace.pause_s * 4):
            break
        client.list_topics(timeout=TIMEOUT_S)
        client.list_consumer_groups(request_timeout=TIMEOUT_S).result()
        done["admin"] += 1


def follower(url: str, _: str) -> None:
    """Reads the stream of the journal's events over HTTP."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as lines:
        for _line in lines:
            done["http"] += 1
            if ended.is_set():
                return


Use = Callable[[str, str], None]

LIBRARIES: dict[str, dict[str, tuple[Use, int]]] = {
    "librdkafka": {
        "idempotent": (idempotent, 6),
        "transactional": (transactional, 3),
        "classic": (classic, 6),
        "modern": (modern, 4),
        "share": (shared, 4),
        "admin": (admin, 2),
    },
    "python": {"kafka-python": (kafka_python, 3), "aiokafka": (asynchronous, 3)},
    "mockbroker": {"streams": (streams, 3), "http": (follower, 2)},
}
ERRORS = (Exception, KafkaException)


def lives(kind: str, use: Use, address: str, name: str) -> None:
    """One client after another until the soak ends."""
    while not ended.is_set():
        try:
            use(address, name)
        except ERRORS:  # whatever a rule does to it: the next one has to get on
            failed[kind] += 1
            ended.wait(Pace.pause_s * 4)


def main() -> None:
    library, servers, stream, pause_s = sys.argv[1:]
    Pace.pause_s = float(pause_s)
    threads = [
        threading.Thread(
            target=lives,
            args=(kind, use, stream if kind == "http" else servers, f"{kind}-{number}"),
            daemon=True,
        )
        for kind, (use, count) in LIBRARIES[library].items()
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join(TIMEOUT_S)
    print(json.dumps({"done": done, "failed": failed}), flush=True)


if __name__ == "__main__":
    main()
