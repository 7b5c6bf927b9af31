"""Shared by all endpoints: the cluster's server, calls in its run, and limits of real time."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import trio

from mockbroker.admin.bridge import Bridge

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.server.cluster_server import ClusterServer

T = TypeVar("T")

# A disk that takes longer for an fsync, in real time, is as good as broken.
DURABLE_TIMEOUT_S = 60.0


class Api(ABC):
    """The cluster of the admin API, for calls from a trio run."""

    def __init__(self, server: ClusterServer) -> None:
        self.server = server

    @abstractmethod
    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        """Run `function(cluster)` in the cluster's run. Raises ClusterUnavailableError."""

    @abstractmethod
    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Run an async function in the cluster's run. Raises ClusterUnavailableError."""

    async def durable(self) -> None:
        """As `ClusterServer.durable`. Raises ClusterUnavailableError."""
        if self.server.data_dir is not None:
            await self.run(self.server.durable, DURABLE_TIMEOUT_S)

    @abstractmethod
    def limit(self, timeout_s: float) -> AbstractContextManager[trio.CancelScope]:
        """A scope that is cancelled after `timeout_s` of real time."""


class BridgedApi(Api):
    """For the admin server, whose run is another one, on real time."""

    def __init__(self, server: ClusterServer, bridge: Bridge) -> None:
        super().__init__(server)
        self._bridge = bridge

    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        return await self._bridge.call(lambda: function(self.server.cluster))

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        return await self._bridge.run(function, timeout_s)

    def limit(self, timeout_s: float) -> AbstractContextManager[trio.CancelScope]:
        return trio.move_on_after(timeout_s)


class OwnRunApi(Api):
    """For endpoints that are called in the cluster's own run, whose clock may be frozen."""

    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        return function(self.server.cluster)

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:  # noqa: ARG002
        return await function()

    @contextmanager
    def limit(self, timeout_s: float) -> Iterator[trio.CancelScope]:
        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:

            def expire() -> None:
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(scope.cancel)

            timer = threading.Timer(timeout_s, expire)
            timer.daemon = True
            timer.start()
            try:
                yield scope
            finally:
                timer.cancel()


class Signal:
    """An event set in the cluster's thread and awaited in the endpoint's."""

    def __init__(self) -> None:
        self._here = trio.lowlevel.current_trio_token()
        self._event = trio.Event()
        self._is_set = False

    def set(self) -> None:
        """Called in any thread. Until somebody waits again, further calls cost nothing: each would
        be a system call, for each entry of the journal.
        """
        if self._is_set:
            return
        self._is_set = True
        try:
            self._here.run_sync_soon(self._wake)
        except trio.RunFinishedError:
            return  # the admin side has stopped

    def _wake(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Wait until it is set, and unset it. What happened before is then to be looked at."""
        await self._event.wait()
        self._event = trio.Event()
        self._is_set = False
