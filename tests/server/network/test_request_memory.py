"""`queued.max.request.bytes`: how much memory the requests of a broker take while they are read."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
import trio
import trio.testing

from mockbroker import Cluster
from mockbroker.server.network.request_memory import REQUEST_MEMORY, RequestMemory
from mockbroker.server.network.stats import Stats
from tests.server.network.test_connection import Raw, api_versions
from tests.support.waiting import wait_until

LARGE = 1 << 20


def exceeded(kafka: Cluster) -> int:
    return kafka.server.stats.limits_exceeded.get(REQUEST_MEMORY, 0)


def test_a_request_waits_for_the_memory_of_another():
    """A client that announces much and sends nothing holds it; small requests need none."""
    with Cluster(brokers=1, configs={REQUEST_MEMORY: str(LARGE)}) as kafka:
        greedy, other, small = Raw(kafka), Raw(kafka), Raw(kafka)
        greedy.send(struct.pack(">i", LARGE) + bytes(10))
        memory = kafka.server.socket_servers[1].request_memory
        wait_until(lambda: memory.available == 0)
        other.send(struct.pack(">i", LARGE) + bytes(LARGE - 1))
        wait_until(lambda: exceeded(kafka) == 1)
        small.send(api_versions(9))
        assert small.correlation_id() == 9
        greedy.socket.close()
        wait_until(lambda: memory.available == 0 and not memory._waiting)
        other.socket.close()
        wait_until(lambda: memory.available == LARGE)


def test_a_request_larger_than_the_memory_is_read_alone():
    """It takes more than there is, and gives it back."""
    with Cluster(brokers=1, configs={REQUEST_MEMORY: "1"}) as kafka:
        client = Raw(kafka)
        for number in range(2):
            # Bytes behind a request are ignored.
            frame = api_versions(number)[4:] + bytes(LARGE)
            client.send(struct.pack(">i", len(frame)) + frame)
            assert client.correlation_id() == number
        memory = kafka.server.socket_servers[1].request_memory
        wait_until(lambda: memory.available == 1)


@pytest.mark.trio
async def test_those_that_wait_are_served_in_their_order_and_may_go():
    memory = RequestMemory(10, Stats(Counter()))
    await memory.take(10)
    got: list[int] = []

    async def take(size: int, scope: trio.CancelScope) -> None:
        with scope:
            await memory.take(size)
            got.append(size)

    scopes = [trio.CancelScope() for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for size, scope in zip((1, 2, 3), scopes, strict=True):
            nursery.start_soon(take, size, scope)
            await trio.testing.wait_all_tasks_blocked()
        scopes[0].cancel()
        await trio.testing.wait_all_tasks_blocked()
        memory.give(1)
        await trio.testing.wait_all_tasks_blocked()
        assert got == [2]
        memory.give(9)
    assert got == [2, 3]
    assert memory.available == 5
