"""What all endpoints share: the cluster's server, calls in its run, and limits of real time."""

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


class Api(ABC):
    """The cluster that the admin API is for, as a trio run reaches it."""

    def __init__(self, server: ClusterServer) -> None:
        self.server = server

    @abstractmethod
    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        """Run `function(cluster)` in the cluster's run. Raises ClusterUnavailableError."""

    @abstractmethod
    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Run an async function in the cluster's run. Raises ClusterUnavailableError."""

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

    def set(self) -> None:
        """Called in any thread."""
        try:
            self._here.run_sync_soon(self._wake, idempotent=True)
        except trio.RunFinishedError:
            return  # the admin side has stopped

    def _wake(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Wait until it is set, and unset it."""
        await self._event.wait()
        self._event = trio.Event()
