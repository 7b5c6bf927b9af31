"""Long work for one request, in slices: other requests are handled between two of them.

One thread serves all clients. A handler with much to do is therefore a generator that yields often.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from mockbroker.handlers.base import Parked

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext

R = TypeVar("R")
PARTITIONS_PER_SLICE = 500
_UNFINISHED: Any = object()


def at_once(work: Generator[None, None, R]) -> R:
    """What `work` returns, without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result


def settled(reply: Parked[R]) -> Generator[Parked[Any] | None, None, R]:
    """Wait for a parked reply; returns the response."""
    if not reply.done:
        yield reply
    return reply.response


def sliced(
    ctx: RequestContext, request: Any, work: Generator[Parked[Any] | None, None, R]
) -> R | Parked[R]:
    """The response of `work`, at once if it has one slice only (`in_slices`)."""
    reply = in_slices(ctx, request, work)
    return reply.response if reply.done else reply


def in_slices(
    ctx: RequestContext, request: Any, work: Generator[Parked[Any] | None, None, R]
) -> Parked[R]:
    """The response that `work` returns, or the error response for what it raises.

    `work` yields None between two slices, and a parked reply to wait for it. It ends with the
    client's connection. All slices count for a quota of handler time.
    """
    reply: Parked[Any] = Parked()

    def go_on() -> None:
        if ctx.connection.closed:
            work.close()
            return
        usage = ctx.usage
        started_ns = 0 if usage is None else usage.now_ns()
        awaited, response = None, _UNFINISHED
        try:
            awaited = next(work)
        except StopIteration as end:
            response = end.value
        except Exception as error:
            response = ctx.failure(request, error)
        if usage is not None:
            usage.spent_ns += usage.now_ns() - started_ns
        if response is not _UNFINISHED:
            reply.complete(response)
        elif awaited is None:
            ctx.cluster.runtime.timers.call_soon(go_on)
        else:
            awaited.on_complete = go_on

    go_on()
    return reply
