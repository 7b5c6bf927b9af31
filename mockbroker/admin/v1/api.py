"""What all endpoints share: the cluster's server, and calls in its thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from mockbroker.admin.bridge import Bridge

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.server.cluster_server import ClusterServer

T = TypeVar("T")


class Api:
    """The cluster that the admin API is for."""

    def __init__(self, server: ClusterServer, bridge: Bridge) -> None:
        self.server = server
        self.bridge = bridge

    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        """Run `function(cluster)` in the cluster's thread. Raises ClusterUnavailableError."""
        return await self.bridge.call(lambda: function(self.server.cluster))

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Run an async function in the cluster's thread. Raises ClusterUnavailableError."""
        return await self.bridge.run(function, timeout_s)


class Signal:
    """An event set in the cluster's thread and awaited in the admin's."""

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
