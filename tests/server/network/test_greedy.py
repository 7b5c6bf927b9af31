"""Greedy and broken clients: what they may take is bounded, and the others are served."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import tracemalloc
from collections.abc import Callable

import pytest
import trio

from mockbroker import Cluster
from mockbroker.client.client import Client
from mockbroker.client.connection import Connection
from mockbroker.server.network.frame_reader import BUFFER_BYTES
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.server.network.test_connection import Raw, api_versions
from tests.support.sockets import close_with_rst
from tests.support.waiting import wait_until

MB = 1 << 20


def connect(kafka: Cluster) -> Connection:
    return Connection(*kafka.endpoint(1))


def served(kafka: Cluster) -> bool:
    """Whether another client is."""
    other = Raw(kafka)
    other.send(api_versions(5))
    with contextlib.closing(other.socket):
        return other.correlation_id() == 5


def requests(kafka: Cluster) -> int:
    return kafka.call(lambda _: sum(kafka.server.stats.requests.values()))


def held(kafka: Cluster) -> int:
    """The bytes that the process holds since tracing began."""
    return kafka.call(lambda _: tracemalloc.get_traced_memory()[0])


def test_a_client_that_reads_no_answer_gets_no_second_one():
    """Its further requests stay in its socket; the answer refers to the log and copies nothing."""
    with Cluster(brokers=1, topics={"t": 1}, journal_bytes=0) as kafka:
        with Client(kafka.bootstrap_servers) as client:
            for _ in range(16):
                client.produce("t", [bytes(MB - 1000)])
        topic = FetchTopic(
            "t", partitions=[FetchPartition(0, fetch_offset=0, partition_max_bytes=64 * MB)]
        )
        fetch = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=64 * MB, topics=[topic])
        clients = [connect(kafka) for _ in range(20)]
        for each in clients:
            each.api_versions()
        before = requests(kafka)
        tracemalloc.start()
        try:
            for each in clients:
                for _ in range(10):
                    each.write(fetch, 12)
            wait_until(lambda: requests(kafka) == before + len(clients))
            assert served(kafka)
            assert held(kafka) < 8 * MB
        finally:
            tracemalloc.stop()
        assert requests(kafka) == before + len(clients) + 1
        for each in clients:
            each.close()
        wait_until(lambda: kafka.server.stats.connections_open == 0)


def test_a_client_that_reads_no_answer_is_closed_when_it_was_idle_for_too_long():
    """As by Kafka (connections.max.idle.ms)."""
    configs = {"connections.max.idle.ms": "60000"}
    with Cluster(brokers=1, topics={"t": 1}, configs=configs) as kafka:
        with Client(kafka.bootstrap_servers) as client:
            for _ in range(16):
                client.produce("t", [bytes(MB - 1000)])
        kafka.clock.freeze()
        topic = FetchTopic(
            "t", partitions=[FetchPartition(0, fetch_offset=0, partition_max_bytes=64 * MB)]
        )
        stuck = connect(kafka)
        before = requests(kafka)
        stuck.write(FetchRequest(min_bytes=0, max_bytes=64 * MB, topics=[topic]), 12)
        wait_until(lambda: requests(kafka) == before + 1)
        kafka.clock.advance("61s", extend_sessions=False)
        wait_until(lambda: kafka.server.stats.connections_open == 0)
        stuck.close()


def test_a_frame_that_comes_byte_by_byte_delays_nobody():
    """A turn of the event loop reads what is there, and no more."""
    with Cluster(brokers=1) as kafka:
        slow = Raw(kafka)
        for at in range(len(request := api_versions(1))):
            slow.send(request[at : at + 1])
            assert served(kafka) or at
        assert slow.correlation_id() == 1


def test_announced_bytes_that_never_come_take_no_memory():
    """A hundred clients announce a frame of 100 MiB each and send its first bytes."""
    with Cluster(brokers=1, journal_bytes=0) as kafka:
        assert served(kafka)
        tracemalloc.start()
        try:
            clients = [Raw(kafka) for _ in range(100)]
            for client in clients:
                client.send(struct.pack(">i", 100 * MB) + bytes(10))
            taken = kafka.server.stats
            wait_until(lambda: taken.bytes_in >= 100 * 100 * MB)
            assert served(kafka)
            assert held(kafka) < 100 * (BUFFER_BYTES + 300 * 1024)
        finally:
            tracemalloc.stop()
        for client in clients:
            client.socket.close()


def test_a_thousand_requests_at_once_are_served_among_those_of_others():
    """One connection's pipelined requests yield: another client waits for a few of them only."""
    count = 20_000
    with Cluster(brokers=1, journal_bytes=0) as kafka:
        greedy = Raw(kafka)
        others = [Raw(kafka) for _ in range(5)]
        flood = memoryview(b"".join(api_versions(number) for number in range(count)))
        greedy.socket.setblocking(False)
        greedy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * MB)
        sent, answered = 0, 0
        while sent < len(flood):
            with contextlib.suppress(BlockingIOError):
                sent += greedy.socket.send(flood[sent:])
            for other in others:
                other.send(api_versions(7))
                assert other.correlation_id() == 7
                answered += 1
            with contextlib.suppress(BlockingIOError):
                while greedy.socket.recv(MB):
                    pass
        assert answered
        greedy.socket.close()
        wait_until(lambda: kafka.server.stats.connections_open == len(others))


class Steps(trio.abc.Instrument):
    """The most requests that were served in one step of a task."""

    def __init__(self, served: Callable[[], int]) -> None:
        self.most = 0
        self._served = served
        self._before = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._before = self._served()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.most = max(self.most, self._served() - self._before)


def test_others_wait_for_a_few_requests_of_a_flood_only():
    with Cluster(brokers=1, journal_bytes=0) as kafka:
        steps = Steps(lambda: sum(kafka.server.stats.requests.values()))
        greedy = Raw(kafka)
        kafka.call(lambda _: trio.lowlevel.add_instrument(steps))
        greedy.send(b"".join(api_versions(number) for number in range(1000)))
        for number in range(1000):
            assert greedy.correlation_id() == number
        greedy.socket.close()
    assert 1 < steps.most <= 4


def test_clients_that_vanish_leave_nothing():
    """Half a frame and no end: the broker closes what is broken, and forgets it."""
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        for _ in range(50):
            client = Raw(kafka)
            client.send(struct.pack(">i", 1000) + bytes(10))
            close_with_rst(client.socket)
        stats = kafka.server.stats
        wait_until(lambda: (stats.connections_opened, stats.connections_open) == (50, 0))
        wait_until(lambda: kafka.call(lambda _: not kafka.server.socket_servers[1].connected))
        half_closed = Raw(kafka)
        half_closed.send(api_versions(3))
        half_closed.socket.shutdown(socket.SHUT_WR)
        assert half_closed.correlation_id() == 3
        assert half_closed.closed_without_an_answer()


def test_giant_fetch_sessions_are_refused_and_counted():
    """Beyond the room for partitions a client goes on without a session."""
    configs = {"mockbroker.fetch.session.partitions.max": "1000"}
    with Cluster(brokers=1, topics={"t": 1}, configs=configs) as kafka, connect(kafka) as client:
        for partitions, has_session in ((900, True), (900, False), (50, True)):
            wanted = [FetchPartition(number, fetch_offset=0) for number in range(partitions)]
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                session_epoch=0,
                topics=[FetchTopic("t", partitions=wanted)],
            )
            answer = client.send(request, 12)
            assert answer.error_code == 0
            assert bool(answer.session_id) is has_session
        exceeded = kafka.call(lambda cluster: dict(cluster.runtime.limits_exceeded))
        assert exceeded == {"mockbroker.fetch.session.partitions.max": 1}


@pytest.mark.slow
def test_ten_thousand_connections_are_served():
    """As many as the descriptors of the process allow, both ends being in it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(10_000, (limit - 500) // 2)
    with Cluster(brokers=1, journal_bytes=0) as kafka:
        clients = [Raw(kafka) for _ in range(count)]
        for client in clients:
            client.send(api_versions(1))
        for client in clients:
            assert client.correlation_id() == 1
        assert served(kafka)
        for client in clients:
            client.socket.close()
        wait_until(lambda: kafka.server.stats.connections_open == 0)
