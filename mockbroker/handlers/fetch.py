"""Fetch (key 1): hand out batches as they are stored, now or when there is enough of them.

What a request asks for is found by its session (`core/fetch_session`). Its targets are then read in
order until the size limits are reached (`fetch_read`). When that is less than the fetcher wants,
and nothing is wrong, the reply is parked: it watches its partitions and looks again whenever one of
them moves (DelayedFetch). What is answered in the end is always read anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.fetch_positions import EXECUTOR
from mockbroker.core.fetch_session import NO_SESSION, FetchContext, next_epoch
from mockbroker.core.partition import Partition
from mockbroker.handlers.base import Parked, api
from mockbroker.handlers.fetch_read import Answer, FetchReader
from mockbroker.handlers.throttling import fetched
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
)

if TYPE_CHECKING:
    from mockbroker.core.timers import Timer
    from mockbroker.handlers.base import RequestContext

TOPIC_IDS_SINCE = 13
_INVALID_EPOCH = int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@api(ApiKey.FETCH, versions=(4, 18))
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | Parked[FetchResponse]:
    """Answer with what is there, or park until `min_bytes` are, for at most `max_wait_ms`."""
    by_id = ctx.header.api_version >= TOPIC_IDS_SINCE
    context = ctx.broker.fetch_sessions.open_context(request, by_id=by_id, now_ms=ctx.now_ms)
    if context.error:
        return FetchResponse(error_code=context.error)
    if EXECUTOR in ctx.client_id:
        ctx.broker.fetch_positions.heard(ctx.client_id, request, by_id=by_id)
    reader = FetchReader(ctx, request, context)
    answers = reader.read()
    if reader.must_answer or request.max_wait_ms <= 0:
        return _respond(ctx, request, context, reader, answers)
    return _PendingFetch(ctx, request, context, reader).start()


def _respond(
    ctx: RequestContext,
    request: FetchRequest,
    context: FetchContext,
    reader: FetchReader,
    answers: list[Answer],
) -> FetchResponse:
    """Make the response of the answers, and remember in the session what was told."""
    session = context.session
    if session is not None and session.epoch != next_epoch(request.session_epoch):
        # Another request used the session while this one was parked.
        return FetchResponse(error_code=_INVALID_EPOCH, session_id=session.session_id)
    topics = _topics(context, answers)
    if ctx.cluster.quotas.throttling is not None and not reader.from_follower:
        wait_ms = fetched(ctx, FetchResponse(responses=topics))
        if wait_ms > 0:
            session_id = NO_SESSION if session is None else session.session_id
            return FetchResponse(throttle_time_ms=wait_ms, session_id=session_id)
    session_id = _session_id(ctx, context, reader)
    if session_id:
        reader.remember(answers)
    return FetchResponse(
        session_id=session_id,
        responses=topics,
        node_endpoints=[] if reader.from_follower else reader.hints.endpoints(NodeEndpoint),
    )


def _session_id(ctx: RequestContext, context: FetchContext, reader: FetchReader) -> int:
    """The session that what is told now is remembered in; a new one where one is asked for."""
    if context.session is not None:
        return context.session.session_id
    if not context.opens_session:
        return NO_SESSION
    return ctx.broker.fetch_sessions.create(
        context.targets,
        by_id=context.by_id,
        privileged=reader.from_follower,
        now_ms=ctx.now_ms,
    )


def _topics(context: FetchContext, answers: list[Answer]) -> list[FetchableTopicResponse]:
    """Partitions of a topic that follow each other share its entry (FetchResponse.of)."""
    topics: list[FetchableTopicResponse] = []
    topic_key: str | bytes | None = None
    for target, data in answers:
        if target.key[0] != topic_key:
            topic_key = target.key[0]
            name = "" if context.by_id else target.topic or ""
            topics.append(FetchableTopicResponse(name, target.topic_id, []))
        topics[-1].partitions.append(data)
    return topics


class _PendingFetch:
    """A reply that waits for bytes (DelayedFetch)."""

    __slots__ = (
        "_context",
        "_ctx",
        "_parked",
        "_reader",
        "_request",
        "_timer",
        "_watched",
    )

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        context: FetchContext,
        reader: FetchReader,
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._context = context
        self._reader = reader
        self._parked: Parked[FetchResponse] = Parked(self._finish)
        self._timer: Timer | None = None
        self._watched = reader.partitions()

    def start(self) -> Parked[FetchResponse]:
        for partition in self._watched:
            partition.watch(self)
        self._timer = self._ctx.cluster.timers.call_when_impatient(
            self._ctx.now_ms + self._request.max_wait_ms, self._finish
        )
        return self._parked

    def partition_changed(self, partition: Partition) -> None:
        if partition.deleted or self._reader.ends_wait(partition, self._watched):
            self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for partition in self._watched:
            partition.unwatch(self)
        reader = self._reader
        answers = reader.read()
        self._parked.complete(_respond(self._ctx, self._request, self._context, reader, answers))
