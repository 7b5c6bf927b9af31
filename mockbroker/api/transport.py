"""Requests to a cluster, blocking or awaited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Request(NamedTuple):
    """A request for the endpoint `method` `path`; `at` has the parameters of the path.

    `wait_s` is the time for which the endpoint itself may wait.
    """

    method: str
    path: str
    at: Mapping[str, object] = {}
    query: Mapping[str, object] = {}
    body: Mapping[str, object] | None = None
    wait_s: float = 0.0


class ClusterError(Exception):
    """The cluster does not answer, or refuses the request as such."""


class Transport(Protocol):
    """The way to a cluster for code that blocks."""

    def request(self, request: Request) -> Any:
        """The answer as the endpoint's struct, a text, or bytes. Raises what `problems.error_of`
        returns.
        """
        ...

    def bootstrap(self, listener: str | None) -> str:
        """`HOST:PORT,…` of every broker on a listener, by default on the first one."""
        ...

    def endpoint(self, node_id: int, listener: str | None) -> tuple[str, int]:
        """(host, port) of one broker."""
        ...


class AsyncTransport(Protocol):
    """The way to a cluster for code that awaits."""

    async def request(self, request: Request) -> Any:
        """As `Transport.request`."""
        ...

    def bootstrap(self, listener: str | None) -> str:
        """As `Transport.bootstrap`."""
        ...

    def endpoint(self, node_id: int, listener: str | None) -> tuple[str, int]:
        """As `Transport.endpoint`."""
        ...


class AwaitedTransport:
    """A blocking transport for asyncio, anyio and trio: each request has a thread."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: Request) -> Any:
        return await in_thread(lambda: self._transport.request(request))

    def bootstrap(self, listener: str | None) -> str:
        return self._transport.bootstrap(listener)

    def endpoint(self, node_id: int, listener: str | None) -> tuple[str, int]:
        return self._transport.endpoint(node_id, listener)


async def in_thread(function: Callable[[], T]) -> T:
    """The result of `function` in a thread of its own.

    If the caller is cancelled, the thread continues unattended. It therefore does not delay the end
    of an event loop, as a worker of asyncio's pool would.
    """
    import outcome
    import sniffio

    answers: list[outcome.Outcome[T]] = []
    is_trio = sniffio.current_async_library() == "trio"
    wake, wait = _trio_event() if is_trio else _asyncio_event()

    def work() -> None:
        answers.append(outcome.capture(function))
        wake()

    threading.Thread(target=work, name="mockbroker-request", daemon=True).start()
    await wait()
    return answers[0].unwrap()


def _trio_event() -> tuple[Callable[[], None], Callable[[], Any]]:
    import trio

    token, event = trio.lowlevel.current_trio_token(), trio.Event()

    def wake() -> None:
        try:
            token.run_sync_soon(event.set)
        except trio.RunFinishedError:
            return  # nobody waits any more

    return wake, event.wait


def _asyncio_event() -> tuple[Callable[[], None], Callable[[], Any]]:
    import asyncio

    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    return wake, event.wait
