"""Shared by all endpoints: the cluster or the saved journal, calls there, limits of real time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from mockbroker.admin.bridge import Bridge
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.server.clock import real_time

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.journal.journal import Journal
    from mockbroker.pipeline.saved import SavedJournal
    from mockbroker.server.cluster_server import ClusterServer

T = TypeVar("T")

# A disk that takes longer for an fsync, in real time, is as good as broken.
DURABLE_TIMEOUT_S = 60.0

# On a busy machine a cluster may not get the processor for seconds. A call that has timed out may
# still be carried out, so the timeout is long. Clients wait 30 s by default.
CALL_TIMEOUT_S = 20.0

_NO_CLUSTER = "this is a saved journal: there is no cluster to look at or to change"


class AdminBackend(ABC):
    """The cluster of the admin API, for calls from a trio run; or, without one, a saved journal."""

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}

    def kept(self, make: Callable[[AdminBackend], T]) -> T:
        """What `make` has made of this API once, for the endpoints that share it."""
        if make not in self._kept:
            self._kept[make] = make(self)
        found: T = self._kept[make]
        return found

    @property
    @abstractmethod
    def server(self) -> ClusterServer:
        """The cluster's server. Raises ProblemError for a saved journal."""

    @property
    @abstractmethod
    def journal(self) -> Journal | SavedJournal:
        """The journal. Raises ProblemError if the cluster keeps none."""

    @abstractmethod
    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id, if it exists."""

    @abstractmethod
    def now_ms(self) -> int:
        """The time of the cluster, or of the last entry of a saved journal."""

    @abstractmethod
    def config_int(self, name: str) -> int:
        """The value of a cluster-wide config, or its default for a saved journal."""

    @abstractmethod
    def exceeded(self, limit: str) -> None:
        """Count that this limit, a config, was exceeded."""

    @abstractmethod
    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        """Run `function(cluster)` in the cluster's run. Raises ClusterUnavailableError."""

    @abstractmethod
    async def read(self, function: Callable[[], T]) -> T:
        """Run `function()` where the journal may be read. Raises ClusterUnavailableError."""

    @abstractmethod
    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Run an async function in the cluster's run. Raises ClusterUnavailableError."""

    async def compute(self, function: Callable[[], T]) -> T:
        """Run `function()` in a thread of its own: the cluster and other requests go on."""
        return await trio.to_thread.run_sync(function, abandon_on_cancel=True)

    @abstractmethod
    async def durable(self) -> None:
        """As `ClusterServer.durable`. Raises ClusterUnavailableError."""

    @abstractmethod
    def limit(self, timeout_s: float) -> AbstractContextManager[trio.CancelScope]:
        """A scope that is cancelled after `timeout_s` of real time."""


class ClusterBackend(AdminBackend):
    """Of a running cluster."""

    def __init__(self, server: ClusterServer) -> None:
        super().__init__()
        self._server = server

    @property
    def server(self) -> ClusterServer:
        return self._server

    @property
    def journal(self) -> Journal:
        journal = self._server.cluster.runtime.journal
        if journal is None:
            raise ProblemError(409, "no journal", "journal_bytes is 0")
        return journal

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._server.cluster.topic_name(topic_id)

    def now_ms(self) -> int:
        return self._server.clock.now_ms()

    def config_int(self, name: str) -> int:
        return self._server.cluster.config_int(name)

    def exceeded(self, limit: str) -> None:
        self._server.cluster.runtime.limits_exceeded[limit] += 1

    def _settled(self) -> Cluster:
        """The cluster, whose coordinators know all that is in their logs."""
        cluster = self._server.cluster
        cluster.runtime.finish_loads()
        return cluster

    async def read(self, function: Callable[[], T]) -> T:
        return await self.cluster(lambda _: function())

    async def durable(self) -> None:
        if self._server.data_dir is not None:
            await self.run(self._server.durable, DURABLE_TIMEOUT_S)


class BridgedBackend(ClusterBackend):
    """For the admin server, whose run is another one, on real time."""

    def __init__(self, server: ClusterServer, bridge: Bridge) -> None:
        super().__init__(server)
        self._bridge = bridge

    def exceeded(self, limit: str) -> None:
        self._bridge.soon(lambda: super(BridgedBackend, self).exceeded(limit))

    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        return await self._bridge.call(lambda: function(self._settled()), CALL_TIMEOUT_S)

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        async def there() -> T:
            self._settled()
            return await function()

        return await self._bridge.run(there, timeout_s)

    def limit(self, timeout_s: float) -> AbstractContextManager[trio.CancelScope]:
        return trio.move_on_after(timeout_s)


class OwnRunBackend(ClusterBackend):
    """For endpoints that are called in the cluster's own run, whose clock may be frozen."""

    async def cluster(self, function: Callable[[Cluster], T]) -> T:
        return function(self._settled())

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:  # noqa: ARG002
        self._settled()
        return await function()

    def limit(self, timeout_s: float) -> AbstractContextManager[trio.CancelScope]:
        return real_time.move_on_after(timeout_s)


class SavedBackend(AdminBackend):
    """Of a saved journal, without a cluster."""

    def __init__(self, journal: SavedJournal) -> None:
        super().__init__()
        self._journal = journal

    @property
    def server(self) -> ClusterServer:
        raise ProblemError(409, "no cluster", _NO_CLUSTER)

    @property
    def journal(self) -> SavedJournal:
        return self._journal

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._journal.topic_name(topic_id)

    def now_ms(self) -> int:
        return self._journal.ended_ms

    def config_int(self, name: str) -> int:
        return ClusterConfigs({}).get_int(name)

    def exceeded(self, limit: str) -> None:
        """Nothing is counted without a cluster."""

    async def cluster(self, function: Callable[[Cluster], T]) -> T:  # noqa: ARG002
        raise ProblemError(409, "no cluster", _NO_CLUSTER)

    async def read(self, function: Callable[[], T]) -> T:
        return function()

    async def run(self, function: Callable[[], Awaitable[T]], timeout_s: float) -> T:  # noqa: ARG002
        raise ProblemError(409, "no cluster", _NO_CLUSTER)

    async def durable(self) -> None:
        return

    def limit(self, timeout_s: float) -> AbstractContextManager[trio.CancelScope]:
        return trio.move_on_after(timeout_s)
