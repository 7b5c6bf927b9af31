"""Endpoints of the admin API, called in the cluster's process without HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from mockbroker.api.transport import ClusterError, Request
from mockbroker.core.validation import nearest

if TYPE_CHECKING:
    from mockbroker.api.calls import Calls
    from mockbroker.server.cluster_server import ClusterServer

OVER = "another cluster has taken the place of the one that this belongs to (see Cluster.renew)"


class OwnRunTransport:
    """For code in the cluster's own trio run. The first request imports the endpoints."""

    def __init__(self, server: ClusterServer) -> None:
        self.server = server
        self._calls: Calls | None = None

    async def request(self, request: Request) -> Any:
        if self._calls is None:
            from mockbroker.api.calls import Calls

            self._calls = Calls(self.server)
        return await self._calls.answer(request)

    def bootstrap(self, listener: str | None) -> str:
        return self.server.bootstrap(self._listener(listener))

    def endpoint(self, node_id: int, listener: str | None) -> tuple[str, int]:
        brokers = self.server.socket_servers
        if node_id not in brokers:
            known = ", ".join(map(str, brokers))
            raise ValueError(f"there is no broker {node_id}; there are: {known}")
        endpoint = brokers[node_id].broker.endpoints[self._listener(listener)]
        return endpoint.host, endpoint.port

    def _listener(self, name: str | None) -> str:
        names = [listener.name for listener in self.server.config.listeners]
        if name is None:
            return names[0]
        if name not in names:
            raise ValueError(f"there is no listener {name!r}{nearest(name, names)}")
        return name


class ThreadTransport:
    """For other threads than the cluster's."""

    def __init__(
        self,
        there: OwnRunTransport,
        token: trio.lowlevel.TrioToken,
        ended: Callable[[], ClusterError],
    ) -> None:
        self._there = there
        self._token = token
        self._ended = ended  # the error for a call after the end of the thread
        self.is_used = False
        self._is_over = False
        self._is_replaced = False
        self._waiting: set[trio.CancelScope] = set()

    def bootstrap(self, listener: str | None) -> str:
        self.is_used = True
        return self._there.bootstrap(listener)

    def endpoint(self, node_id: int, listener: str | None) -> tuple[str, int]:
        self.is_used = True
        return self._there.endpoint(node_id, listener)

    def request(self, request: Request) -> Any:
        self.is_used = True
        if _is_in_trio():
            raise RuntimeError(
                "this call blocks and would stop this trio run: await the same of `kafka.aio`"
            )
        try:
            return trio.from_thread.run(self._request, request, trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled, _OverError):
            error = ClusterError(OVER) if self._is_replaced else self._ended()
        raise error

    async def _request(self, request: Request) -> Any:
        if not self._is_over:
            with trio.CancelScope() as scope:
                self._waiting.add(scope)
                try:
                    return await self._there.request(request)
                finally:
                    self._waiting.discard(scope)
        raise _OverError

    def end(self, *, replaced: bool) -> None:
        """End requests to this cluster: they raise ClusterError.

        If it is not `replaced` by another one, the thread ends too, and says why.
        """
        self._is_over, self._is_replaced = True, replaced
        for scope in self._waiting:
            scope.cancel()


class _OverError(Exception):
    """The cluster of a request has ended."""


def _is_in_trio() -> bool:
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True
