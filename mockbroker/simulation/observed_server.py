"""A cluster server whose handlers are observed: for laws about single requests and answers.

An answer is observed when it is made, at the state it is about. A client gets it later or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.handlers.base import ConnectionInfo, Parked, RequestContext
from mockbroker.server.cluster_server import ClusterServer
from mockbroker.server.network.connection import Connection

if TYPE_CHECKING:
    from mockbroker.server.config import ListenerSpec
    from mockbroker.server.network.acceptor import AcceptedTransport
    from mockbroker.server.network.routes import Route
    from mockbroker.server.network.socket_server import SocketServer


class Observer(Protocol):
    """Sees what handlers get and return."""

    def on_request(self, context: RequestContext, request: Any) -> None:
        """A handler is about to get a request."""
        ...

    def on_response(
        self, context: RequestContext, request: Any, response: Any, *, late: bool
    ) -> None:
        """A handler has made a response, or an `Outcome`; `late` if the request was parked.

        It is not called for a request that rules act on: they may change its response.
        """
        ...


class ObservedServer(ClusterServer):
    """Serves clients of PLAINTEXT listeners with observed connections."""

    observer: Observer

    def _connection(
        self,
        host: SocketServer,
        listener: ListenerSpec,
        accepted: AcceptedTransport,
        info: ConnectionInfo,
    ) -> Connection:
        return _ObservedConnection(host, listener.name, info, accepted, self.observer)


class _ObservedConnection(Connection):
    """Reports each call of a handler."""

    __slots__ = ("_has_rules", "_observer")

    def __init__(
        self,
        server: SocketServer,
        listener: str,
        info: ConnectionInfo,
        accepted: AcceptedTransport,
        observer: Observer,
    ) -> None:
        super().__init__(accepted, server, listener, info, accepted)
        self._observer = observer
        self._has_rules = False

    def handle(self, context: RequestContext, request: object, route: Route) -> object:
        """As `Connection.handle`."""
        observer = self._observer
        observer.on_request(context, request)
        response = super().handle(context, request, route)
        if self._has_rules:
            return response
        if isinstance(response, Parked):
            if not response.done:
                return _observed(observer, context, request, response)
            response = response.response
        observer.on_response(context, request, response, late=False)
        return response

    def handle_late(self, context: RequestContext, request: object, route: Route) -> object:
        """As `Connection.handle_late`."""
        self._has_rules = True
        try:
            return super().handle_late(context, request, route)
        finally:
            self._has_rules = False


def _observed(
    observer: Observer, context: RequestContext, request: object, parked: Parked[Any]
) -> Parked[Any]:
    """A reply that reports its completion before it completes."""
    observed: Parked[Any] = Parked(parked.force_complete)
    observed.unanswered = parked.unanswered

    def complete() -> None:
        observer.on_response(context, request, parked.response, late=True)
        observed.complete(parked.response)

    parked.on_complete = complete
    return observed
