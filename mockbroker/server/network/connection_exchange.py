"""The exchange of a connection for which a rule fires."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from mockbroker.exchange.faulted import FaultedExchange
from mockbroker.exchange.served import ServedExchange
from mockbroker.handlers.base import Parked, RequestContext
from mockbroker.server.network.frame_reader import InvalidReceiveError
from mockbroker.server.network.pending_exchange import PendingExchange

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import FaultEngine, Fired
    from mockbroker.exchange.base import Arm
    from mockbroker.server.network.connection import Connection
    from mockbroker.server.network.routes import Route
    from mockbroker.server.network.transport import Buffer

log = logging.getLogger("mockbroker")


class ConnectionExchange(ServedExchange, PendingExchange):
    """One request of a connection, as an `Exchange`. The connection waits for it as for any parked
    request.
    """

    __slots__ = (
        "_connection",
        "_context",
        "_faulted",
        "_is_closed",
        "_request",
        "_route",
        "_started_ns",
    )

    def __init__(
        self,
        connection: Connection,
        engine: FaultEngine,
        fired: Fired,
        context: RequestContext,
        route: Route,
        started_ns: int,
    ) -> None:
        self._connection = connection
        self._context = context
        self._request: Any = fired.facts.request
        self._route = route
        self._started_ns = started_ns
        self._is_closed = False
        self._faulted = FaultedExchange(self, engine, fired)

    @property
    def force_complete(self) -> None:
        """None: the rules decide how long the exchange takes."""

    async def sent(self) -> Sequence[Buffer] | None:
        """Carry out the rules; returns no bytes, as nothing is left to send, or None to close."""
        try:
            await self._faulted.run()
        except (OSError, InvalidReceiveError, trio.ClosedResourceError):
            raise
        except Exception:
            log.exception(
                "%s: a rule could not be carried out: %s",
                self._connection.peer,
                ", ".join(self._faulted.rules),
            )
            return None
        return None if self._is_closed or self._connection.is_over else ()

    # -- `Exchange` --------------------------------------------------------------------------------

    async def wait(self, arm: Arm) -> None:
        over = trio.Event()
        arm(over.set)
        await over.wait()

    def when_closed_by_client(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._connection.when_closed_by_client(call)

    async def released(self) -> None:
        await self._connection.gate.wait()

    async def apply(self, request: Any) -> Any:
        response = self._connection.handle_late(self._context, request, self._route)
        if isinstance(response, Parked):
            if not response.done:
                await self.wait(lambda over: setattr(response, "on_complete", over))
                await self.released()
            response = response.response
        return response

    async def answer(self, request: Any, response: Any) -> None:
        parts = self.frame(request, response)
        if parts is None:
            self._is_closed = True
        elif parts:
            await self.send(parts)

    def frame(self, request: Any, response: Any) -> Sequence[Buffer] | None:
        return self._connection.frame(
            self._context, request, self._route, self._started_ns, response
        )

    async def send(self, parts: Sequence[Buffer]) -> None:
        await self._connection.send_all(parts)

    async def serve_next(self, within_ms: int) -> bool:
        return await self._connection.serve_next(within_ms)

    def unanswered(self, outcome: str) -> None:
        self._connection.journal_unanswered(self._context, outcome)

    def mute(self, wait_ms: int) -> None:
        self._connection.mute(wait_ms)

    def close(self, *, reset: bool) -> None:
        self._is_closed = True
        if reset:
            self._connection.reset()
