"""Long work for one request, in slices: other requests are handled between two of them.

One thread serves all clients. A handler with much to do is therefore a generator that yields often.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from mockbroker.core.brokers.broker_life import PAUSED, RUNNING
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


def in_slices(
    ctx: RequestContext,
    request: Any,
    work: Generator[Parked[Any] | None, None, R],
    *,
    changes: bool = False,
) -> R | Parked[R]:
    """The response that `work` returns: at once if it has one slice only.

    `work` yields None between two slices, and a parked reply to wait for it. It ends with the
    client's connection; work that `changes` the cluster goes on without a client, as in Kafka, as
    long as the broker runs. All slices count for a quota of handler time. What the first slice
    raises is raised here; for what a later one raises, the response is the API's error response.
    """
    try:
        awaited = next(work)
    except StopIteration as end:
        response: R = end.value
        return response
    return _going_on(ctx, request, work, awaited, changes=changes)


def _going_on(
    ctx: RequestContext,
    request: Any,
    work: Generator[Parked[Any] | None, None, R],
    first: Parked[Any] | None,
    *,
    changes: bool,
) -> Parked[R]:
    """Wait for `first`, and go on."""
    reply: Parked[Any] = Parked()

    def go_on() -> None:
        if ctx.connection.closed and not (changes and ctx.broker.state in (RUNNING, PAUSED)):
            work.close()
            return
        usage = ctx.usage
        started_ns = 0 if usage is None else usage.now_ns()
        awaited, response = None, _UNFINISHED
        with ctx.as_cause():
            try:
                awaited = next(work)
            except StopIteration as end:
                response = end.value
            except Exception as error:
                response = ctx.failure(request, error)
        if usage is not None:
            usage.spent_ns += usage.now_ns() - started_ns
        if response is _UNFINISHED:
            go_on_after(awaited)
        else:
            reply.complete(response)

    def go_on_after(awaited: Parked[Any] | None) -> None:
        if awaited is None:
            ctx.cluster.runtime.timers.call_soon(go_on)
        else:
            awaited.on_complete = go_on

    go_on_after(first)
    return reply
