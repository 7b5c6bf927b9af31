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
    reply: Parked[R] = Parked()
    _Slices(ctx, request, work, reply, changes=changes).go_on_after(awaited)
    return reply


def begin(
    ctx: RequestContext, request: Any, work: Generator[None, None, None], reply: Parked[Any]
) -> None:
    """Do a part of a request in slices, the first of them now, for the parked `reply`.

    The part itself sees to it that `reply` is completed. If a slice fails, the first one too,
    `reply` is the API's error response. The work goes on without a client.
    """
    try:
        with ctx.as_cause():
            next(work)
    except StopIteration:
        return
    except Exception as error:
        if not reply.done:
            reply.complete(ctx.failure(request, error))
        return
    _Slices(ctx, request, work, reply, changes=True).go_on_after(None)


class _Slices:
    """The later slices of a request's work. What the work returns, if anything, is the response."""

    __slots__ = ("_changes", "_ctx", "_reply", "_request", "_work")

    def __init__(
        self,
        ctx: RequestContext,
        request: Any,
        work: Generator[Parked[Any] | None, None, Any],
        reply: Parked[Any],
        *,
        changes: bool,
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._work = work
        self._reply = reply
        self._changes = changes

    def go_on_after(self, awaited: Parked[Any] | None) -> None:
        """Go on in the next turn, or once a reply is there."""
        if awaited is None:
            self._ctx.cluster.runtime.timers.call_soon(self._go_on)
        else:
            awaited.on_complete = self._go_on

    def _go_on(self) -> None:
        ctx, usage = self._ctx, self._ctx.usage
        if ctx.connection.closed and not (self._changes and ctx.broker.state in (RUNNING, PAUSED)):
            self._work.close()
            return
        if usage is not None:
            usage.begin()
        awaited, response = None, _UNFINISHED
        with ctx.as_cause():
            try:
                awaited = next(self._work)
            except StopIteration as end:
                response = end.value
            except Exception as error:
                response = ctx.failure(self._request, error)
        if usage is not None:
            usage.end()
        if response is _UNFINISHED:
            self.go_on_after(awaited)
        elif response is not None and not self._reply.done:
            self._reply.complete(response)
