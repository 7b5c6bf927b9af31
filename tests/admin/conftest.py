"""A trio run in a thread in place of the cluster's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

from mockbroker.admin import AdminServer, ClusterMetrics, start_admin
from tests.support.http import HttpClient, RawAnswer


@dataclass
class ClusterRun:
    """A target whose metrics the test sets; it records the threads that read them."""

    token: trio.lowlevel.TrioToken
    thread: threading.Thread
    server: None = None
    current: ClusterMetrics = field(default_factory=lambda: ClusterMetrics(brokers=3))
    askers: list[threading.Thread] = field(default_factory=list)

    def metrics(self) -> ClusterMetrics:
        self.askers.append(threading.current_thread())
        return self.current


@contextmanager
def cluster_run(clock: trio.abc.Clock | None = None) -> Iterator[ClusterRun]:
    started: list[trio.lowlevel.TrioToken] = []
    ready = threading.Event()
    stop = trio.Event()

    async def main() -> None:
        started.append(trio.lowlevel.current_trio_token())
        ready.set()
        await stop.wait()

    thread = threading.Thread(target=lambda: trio.run(main, clock=clock), daemon=True)
    thread.start()
    assert ready.wait(10)
    run = ClusterRun(started[0], thread)
    try:
        yield run
    finally:
        if thread.is_alive():
            run.token.run_sync_soon(stop.set)
            thread.join(10)


@pytest.fixture
def cluster() -> Iterator[ClusterRun]:
    with cluster_run() as run:
        yield run


StartAdmin = Callable[..., AdminServer]


@pytest.fixture
def start() -> Iterator[StartAdmin]:
    """`start_admin`, with a stop at the end of the test."""
    servers: list[AdminServer] = []

    def starter(*args: Any, **options: Any) -> AdminServer:
        servers.append(start_admin(*args, **options))
        return servers[-1]

    yield starter
    for server in servers:
        assert server.stop()


def get(server: AdminServer, path: str, method: str = "GET") -> RawAnswer:
    return HttpClient(server.url).raw(method, path)
