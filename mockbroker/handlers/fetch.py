"""Fetch (1): batches as they are stored, at once or when there are enough bytes.

The fetch session gives the partitions to read (`core/fetching/fetch_session`). They are read in
order until the size limits are reached (`fetch_read`). If there are too few bytes and no partition
has an error, the reply is parked: it watches its partitions and checks again whenever one of them
changes (DelayedFetch). A response is always read when it is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.configs.differences import FETCH_YIELDS
from mockbroker.core.fetching.fetch_positions import EXECUTOR
from mockbroker.core.fetching.fetch_session import (
    NO_SESSION,
    FetchContext,
    FetchTarget,
    next_epoch,
)
from mockbroker.core.purgatory.delayed_operation import DelayedOperation
from mockbroker.core.replication.partition import Partition
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import by_handler, on_cluster, on_topic, requires
from mockbroker.handlers.base import Parked, api
from mockbroker.handlers.fetch_read import FetchedPartition, FetchReader
from mockbroker.handlers.refusals import ErrorDetails, Refusal
from mockbroker.handlers.throttling import record_fetch
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
)

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext

TOPIC_IDS_SINCE = 13
_INVALID_EPOCH = int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)


def _finish_refusal(response: FetchResponse, request: FetchRequest, details: ErrorDetails) -> None:
    """Since v13 the error is in the top level only."""
    response.session_id = request.session_id
    if details.version >= TOPIC_IDS_SINCE:
        response.responses = []


@api(
    ApiKey.FETCH,
    versions=(4, 18),
    authorize=by_handler(
        requires(
            on_topic(AclOperation.READ),
            about="each, for consumers",
        ),
        requires(
            on_cluster(AclOperation.CLUSTER_ACTION),
            about="for followers",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for all",
        ),
    ),
    refusal=Refusal(
        rows=("responses",),
        sources={"responses": "topics"},
        fixed={"PartitionData": {"high_watermark": -1, "records": b""}},
        finish=_finish_refusal,
    ),
)
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | Parked[FetchResponse]:
    """Answer at once, or wait for `min_bytes` for at most `max_wait_ms`."""
    by_id = ctx.header.api_version >= TOPIC_IDS_SINCE
    context = ctx.broker.fetch_sessions.open_context(request, by_id=by_id, now_ms=ctx.now_ms)
    if context.error:
        return FetchResponse(error_code=context.error)
    if EXECUTOR in ctx.client_id:
        ctx.broker.fetch_positions.record(ctx.client_id, request, by_id=by_id)
    reader = FetchReader(ctx, request, context)
    answers = reader.read()
    if reader.must_answer or request.max_wait_ms <= 0:
        return _respond(ctx, request, context, reader, answers)
    return DelayedFetch(ctx, request, context, reader).start()


def _respond(
    ctx: RequestContext,
    request: FetchRequest,
    context: FetchContext,
    reader: FetchReader,
    answers: list[FetchedPartition],
) -> FetchResponse:
    """Make the response, and update the session."""
    session = context.session
    if session is not None and session.epoch != next_epoch(request.session_epoch):
        # Another request used the session while this one was parked.
        return FetchResponse(error_code=_INVALID_EPOCH, session_id=session.session_id)
    topics = _topics(context, answers)
    if ctx.cluster.quotas.throttling is not None and not reader.from_follower:
        wait_ms = record_fetch(ctx, FetchResponse(responses=topics))
        if wait_ms > 0:
            session_id = NO_SESSION if session is None else session.session_id
            return FetchResponse(throttle_time_ms=wait_ms, session_id=session_id)
    session_id = _session_id(ctx, context, reader)
    if session_id:
        reader.update_session(answers)
    return FetchResponse(
        session_id=session_id,
        responses=topics,
        node_endpoints=[] if reader.from_follower else reader.hints.endpoints(NodeEndpoint),
    )


def _session_id(ctx: RequestContext, context: FetchContext, reader: FetchReader) -> int:
    """The id of the request's session, or of a new one if the request opens one."""
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


def _topics(context: FetchContext, answers: list[FetchedPartition]) -> list[FetchableTopicResponse]:
    """Successive partitions of a topic share its entry (FetchResponse.of)."""
    topics: list[FetchableTopicResponse] = []
    topic_key: str | bytes | None = None
    for target, data in answers:
        if target.key[0] != topic_key:
            topic_key = target.key[0]
            name = "" if context.by_id else target.topic or ""
            topics.append(FetchableTopicResponse(name, target.topic_id, []))
        topics[-1].partitions.append(data)
    return topics


class DelayedFetch(DelayedOperation):
    """A reply that waits for bytes. It is read when it completes.

    It watches the partitions of all targets but those that rest; the session says when one of these
    is woken.
    """

    __slots__ = ("_context", "_ctx", "_reader", "_request", "_targets", "reply")

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        context: FetchContext,
        reader: FetchReader,
    ) -> None:
        super().__init__()
        self._ctx = ctx
        self._request = request
        self._context = context
        self._reader = reader
        self._targets = reader.partitions()
        makes_way = ctx.cluster.config(FETCH_YIELDS)
        self.reply: Parked[FetchResponse] = Parked(self.force_complete if makes_way else None)

    def start(self) -> Parked[FetchResponse]:
        """Wait for a change of the partitions, at most for `max_wait_ms`."""
        if self._context.session is not None:
            self._context.session.waiting[self] = None
        self.watch(
            self._targets,
            self._ctx.cluster.runtime.timers,
            self._ctx.now_ms + self._request.max_wait_ms,
        )
        return self.reply

    def woken(self, partition: Partition, target: FetchTarget) -> None:
        """Wait for changes of one more partition."""
        self._targets[partition] = target  # these are the keys of the operation
        partition.watch(self)

    def try_complete(self, changed: Partition) -> None:
        ctx = self._ctx
        if not ctx.cluster.metadata.image_has(ctx.broker.node_id, changed):
            self._follow()
        elif self._reader.ends_wait(changed, self._targets):
            self.force_complete()

    def _follow(self) -> None:
        """Watch the partitions of the broker's newer image; end the wait if one is gone."""
        former, self._targets = self._targets, self._reader.partitions()
        self.watch_instead(self._targets)
        lost = set(former.values()) - set(self._targets.values())
        if lost or any(self._reader.ends_wait(each, self._targets) for each in self._targets):
            self.force_complete()

    def on_complete(self) -> None:
        if self._context.session is not None:
            self._context.session.waiting.pop(self, None)
        reader = self._reader
        answers = reader.read()
        self.reply.complete(_respond(self._ctx, self._request, self._context, reader, answers))
