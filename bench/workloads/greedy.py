"""Greedy clients, in a process of their own: `python -m bench.workloads.greedy KIND HOST PORT`.

It prints `ready` once the greed is at its full, and goes on until standard input ends. It runs at
a low priority: it competes with other clients at the broker, not for their CPU.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator

from bench import raw, swarm
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

TOPIC = "bench-greedy"
PARTITIONS = 9_000
"""Of the topic, for the session: each of three brokers leads 3,000."""
METADATA, PRODUCE, FETCH = 9, 8, 11  # versions that every peer serves
BIG_BYTES = 900_000
BIG_BATCHES = 16
FETCHED_MAX = 64 << 20

CLIENTS_NOT_READING = 20
FETCHES_NOT_READ = 10
CLIENTS_DRIPPING = 200
ANNOUNCED_BYTES = 100 << 20
DRIP_S = 1.0
CONNECTIONS = 2000
REQUESTS_AT_ONCE = 20_000
LOW_PRIORITY = 5
LISTEN_PAUSE_S = 0.01
_READ_BYTES = 1 << 20

ended = threading.Event()
Greed = Callable[[swarm.Address], Iterator[None]]
"""Yields once, when it is at its full, and ends when it is resumed and `ended` is set."""


def _connected(address: swarm.Address) -> socket.socket:
    connection = socket.create_connection(address, raw.TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def never_reading(address: swarm.Address) -> Iterator[None]:
    """Clients that fetch 16 MB, again and again, and read nothing of it."""
    with raw.RawConnection(address) as connection:
        batch = build_batch([Record(timestamp=0, value=bytes(BIG_BYTES))])
        produced = TopicProduceData(
            name=TOPIC, partition_data=[PartitionProduceData(index=0, records=bytes(batch))]
        )
        frame = raw.request(
            ApiKey.PRODUCE,
            PRODUCE,
            ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[produced]),
        )
        for _ in range(BIG_BATCHES):
            connection.round_trip(frame)
    partition = FetchPartition(partition=0, partition_max_bytes=FETCHED_MAX)
    request = FetchRequest(
        max_bytes=FETCHED_MAX, topics=[FetchTopic(topic=TOPIC, partitions=[partition])]
    )
    fetches = raw.request(ApiKey.FETCH, FETCH, request) * FETCHES_NOT_READ
    clients = [_connected(address) for _ in range(CLIENTS_NOT_READING)]
    for client in clients:
        client.sendall(fetches)
    yield
    ended.wait()


def dripping(address: swarm.Address) -> Iterator[None]:
    """Clients that announce a frame of 100 MiB and send a byte of it each second."""
    clients = [_connected(address) for _ in range(CLIENTS_DRIPPING)]
    for client in clients:
        client.sendall(struct.pack(">i", ANNOUNCED_BYTES))
    yield
    for client in itertools.cycle(clients):  # one after the other, as strangers do
        if ended.wait(DRIP_S / len(clients)):
            return
        with contextlib.suppress(OSError):  # closed by a peer that has had enough
            client.send(b"\0")


def connecting(address: swarm.Address) -> Iterator[None]:
    """One client with 2,000 connections, which it closes and opens anew without a pause."""

    def connection() -> raw.RawConnection:
        made = raw.RawConnection(address, raw.TIMEOUT_S, 4096)
        made.round_trip(raw.api_versions())
        return made

    held = [connection() for _ in range(CONNECTIONS)]
    yield
    while not ended.is_set():
        held.pop(0).__exit__(None, None, None)
        held.append(connection())


def flooding(address: swarm.Address) -> Iterator[None]:
    """One client that sends tiny requests without waiting for the answers, and reads them."""
    flood = memoryview(raw.api_versions() * REQUESTS_AT_ONCE)
    client = _connected(address)
    client.setblocking(False)
    at = 0
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
        yield
        while not ended.is_set():
            for _, events in selector.select(LISTEN_PAUSE_S):
                if events & selectors.EVENT_READ:
                    client.recv(_READ_BYTES)
                if events & selectors.EVENT_WRITE:
                    at = (at + client.send(flood[at:])) % len(flood)


def sessions(address: swarm.Address) -> Iterator[None]:
    """One consumer with a fetch session of every partition that a broker leads, a third of them,
    which it asks without a pause.
    """
    partitions = [FetchPartition(partition=number) for number in _led(address)]
    full = FetchRequest(
        max_bytes=FETCHED_MAX,
        session_epoch=0,
        topics=[FetchTopic(topic=TOPIC, partitions=partitions)],
    )
    with raw.RawConnection(address) as connection:

        def asked(request: FetchRequest) -> int:
            frame = connection.round_trip(raw.request(ApiKey.FETCH, FETCH, request))
            answer = raw.answer(ApiKey.FETCH, FETCH, frame)
            if answer.error_code:
                raise RuntimeError(f"Fetch: error {answer.error_code}")
            session: int = answer.session_id
            return session

        session, epoch = asked(full), 1
        yield
        while not ended.is_set():
            asked(
                FetchRequest(
                    max_wait_ms=0, max_bytes=FETCHED_MAX, session_id=session, session_epoch=epoch
                )
            )
            epoch += 1


def _led(address: swarm.Address) -> list[int]:
    """The partitions that the broker at an address leads."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    with raw.RawConnection(address) as connection:
        frame = connection.round_trip(raw.request(ApiKey.METADATA, METADATA, request))
    found = raw.answer(ApiKey.METADATA, METADATA, frame)
    [node] = [each.node_id for each in found.brokers if each.port == address[1]]
    partitions = found.topics[0].partitions
    return [each.partition_index for each in partitions if each.leader_id == node]


KINDS: dict[str, Greed] = {
    "never-reading": never_reading,
    "dripping": dripping,
    "connecting": connecting,
    "flooding": flooding,
    "session": sessions,
}


def main() -> None:
    kind, host, port = sys.argv[1:]
    os.nice(LOW_PRIORITY)
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    for _ in KINDS[kind]((host, int(port))):
        print("ready", flush=True)


if __name__ == "__main__":
    main()
