"""The interface of an exchange, for effects that delay, change, hold or lose it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mockbroker.core.faults.facts import ExchangeContext

if TYPE_CHECKING:
    from mockbroker.core.runtime import Runtime
    from mockbroker.handlers.base import ConnectionInfo, Marks

Buffer: TypeAlias = bytes | bytearray | memoryview
Arm: TypeAlias = "Callable[[Callable[[], None]], object]"
"""Takes a callback, and calls it when the wait is over."""


class Exchange(ExchangeContext, Protocol):
    """One request of a client, from its arrival until its answer is sent or never will be.

    `ExchangeContext` has its API, version, client, connection, listener and broker.
    """

    @property
    def connection(self) -> ConnectionInfo:
        """The connection, with the principal, and the SASL state if its listener has SASL."""
        ...

    @property
    def request(self) -> Any:
        """The decoded request, as it arrived."""
        ...

    @property
    def arrived_ms(self) -> int:
        """When the request arrived, in ms since the epoch."""
        ...

    @property
    def runtime(self) -> Runtime:
        """The clock (`now_ms()`, in ms since the epoch) and the timers."""
        ...

    def mark(self, marks: Marks) -> None:
        """Set the rules that fire, for journal and trace. The outcome in `marks` may change until
        the answer is framed.
        """
        ...

    async def wait(self, arm: Arm) -> None:
        """Call `arm` with a callback, and return at its first call."""
        ...

    def when_closed_by_client(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` once if the client closes its side; returns the function that ends this."""
        ...

    async def released(self) -> None:
        """Return at once, or when a paused broker is resumed."""
        ...

    async def apply(self, request: Any) -> Any:
        """Have a request handled and return its response, or an `Outcome`.

        `request` has the same API and version. It is another one if a rule has edited it or refused
        a part of it.
        """
        ...

    async def answer(self, request: Any, response: Any) -> None:
        """Frame a response (or an `Outcome`) and send it, or close the connection instead."""
        ...

    def frame(self, request: Any, response: Any) -> Sequence[Buffer] | None:
        """Count, trace and journal a response as the answer, and return the parts of its frame.

        They are empty if the request has no answer, None if the connection is to be closed instead.
        """
        ...

    async def send(self, parts: Sequence[Buffer]) -> None:
        """Send all bytes of all parts, in order."""
        ...

    async def serve_next(self, within_ms: int) -> bool:
        """Serve and answer the connection's next request, if it comes within so many ms; whether
        the connection stays open.
        """
        ...

    def unanswered(self, outcome: str) -> None:
        """Journal that no answer is sent; `outcome` is `dropped`, or `closed` with the
        connection.
        """
        ...

    def mute(self, wait_ms: int) -> None:
        """Read no request for so many ms, once this exchange is over (KIP-219)."""
        ...

    def close(self, *, reset: bool) -> None:
        """Close the connection, with RST if `reset`, with FIN otherwise."""
        ...
