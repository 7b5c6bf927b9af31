"""The exchange of a call with firing rules, without a connection.

It has no event loop: a coroutine yields the condition that a rule waits for, and continues when the
condition calls back.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.exchange.faulted import FaultedExchange
from mockbroker.exchange.served import ServedExchange
from mockbroker.handlers.base import (
    NO_RESPONSE,
    EncodedResponse,
    Outcome,
    Parked,
    RequestContext,
)
from mockbroker.server.network.routes import Route
from mockbroker_protocol.exceptions import DecodeError

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import FaultEngine, Fired
    from mockbroker.exchange.base import Arm, Buffer

_SIZE_AND_ID = struct.Struct(">ii")


class Caller(Protocol):
    """The client that made the call."""

    def handle(self, request: Any) -> Any:
        """The handler's answer to a request: a response, a parked one or an `Outcome`."""
        ...

    def answer(self, response: Any) -> None:
        """Send the answer to the client."""
        ...

    def close(self) -> None:
        """Close the client's connection."""
        ...

    def mute(self, wait_ms: int) -> None:
        """Delay the connection's next call by `wait_ms`."""
        ...

    def when_running(self, call: Callable[[], None]) -> None:
        """Call as soon as the broker runs: at once, when it is resumed, or never if it stops."""
        ...

    @property
    def broker_ended(self) -> bool:
        """Whether the broker's process has ended since the call, and its connections with it."""
        ...


class _Wait:
    """A condition to wait for: `arm` gets the callback."""

    __slots__ = ("arm",)

    def __init__(self, arm: Arm) -> None:
        self.arm = arm

    def __await__(self) -> Generator[_Wait, None, None]:
        yield self


class FastExchange(ServedExchange):
    """One such call, as an `Exchange`. Nothing is journaled or traced in the fast mode."""

    def __init__(self, context: RequestContext, request: Any, route: Route, caller: Caller) -> None:
        self._context = context
        self._request = request
        self._route = route
        self._caller = caller
        self._received = b""  # the received part of the frame

    def begin(self, engine: FaultEngine, fired: Fired) -> None:
        """Apply the rules up to the first wait; timers continue."""
        self._drive(FaultedExchange(self, engine, fired).run())

    def _drive(self, work: Coroutine[_Wait, None, None]) -> None:
        """Run the coroutine up to its next wait. It ends with the broker's process."""
        if self._caller.broker_ended:
            work.close()
            return
        try:
            wait = work.send(None)
        except StopIteration:
            return
        is_over = False

        def over() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._drive(work)

        wait.arm(over)

    # -- the interface `Exchange` ------------------------------------------------------------------

    async def wait(self, arm: Arm) -> None:
        await _Wait(arm)

    def when_closed_by_client(self, call: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        """A client of the fast mode waits for its answer."""
        return lambda: None

    async def released(self) -> None:
        await _Wait(self._caller.when_running)

    async def apply(self, request: Any) -> Any:
        response = self._caller.handle(request)
        if isinstance(response, Parked):
            if not response.done:
                await _Wait(partial(setattr, response, "on_complete"))
                await self.released()
            response = response.response
        return response

    async def answer(self, request: Any, response: Any) -> None:  # noqa: ARG002
        self._caller.answer(response)

    def frame(self, request: Any, response: Any) -> Sequence[Buffer] | None:  # noqa: ARG002
        if isinstance(response, Outcome):
            self._caller.answer(response)  # without acks, the client does not wait for a frame
            return () if response is NO_RESPONSE else None
        codec = self._route.response
        encoded = isinstance(response, EncodedResponse)
        body = response.parts if encoded else codec.encode(response)
        size = 4 + sum(map(len, body))
        return (_SIZE_AND_ID.pack(size, self.header.correlation_id), *body)

    async def send(self, parts: Sequence[Buffer]) -> None:
        """The client decodes a complete frame, and closes the connection if it is invalid."""
        self._received += b"".join(parts)
        if len(self._received) < _SIZE_AND_ID.size:
            return
        size, correlation_id = _SIZE_AND_ID.unpack_from(self._received)
        body = self._received[_SIZE_AND_ID.size : 4 + size]
        if correlation_id != self.header.correlation_id:
            self._caller.close()
        elif len(body) == size - 4:
            try:
                response, _ = self._route.response.decode(memoryview(body))
            except DecodeError:
                self._caller.close()
            else:
                self._caller.answer(response)

    async def serve_next(self, within_ms: int) -> bool:
        """A client has one call at a time, so no other is served."""
        due_ms = self.runtime.now_ms() + within_ms
        await _Wait(partial(self.runtime.timers.call_at, due_ms))
        return True

    def unanswered(self, outcome: str) -> None:
        """The fast mode has no journal."""

    def mute(self, wait_ms: int) -> None:
        self._caller.mute(wait_ms)

    def close(self, *, reset: bool) -> None:  # noqa: ARG002
        self._caller.close()
