"""ShareFetch (78): acquire records for a member of a share group, and acknowledge others (KIP-932).

The share session gives the partitions (`core/share/sessions`). Acknowledgements are applied first,
and answered when they are written. If there are too few bytes, or no share partition can be
fetched, the reply is parked: it watches the partitions and the share partitions
(DelayedShareFetch). A request that renews acquisition locks fetches nothing (KIP-1222).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.configs.differences import FETCH_YIELDS
from mockbroker.core.errors import ApiError
from mockbroker.core.purgatory.delayed_operation import DelayedOperation, Watchable
from mockbroker.core.replication.partition import Partition
from mockbroker.core.security.acls import AclOperation
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.sessions import ShareFetchContext, ShareTarget
from mockbroker.core.share.states import FINAL_EPOCH, AcquireMode
from mockbroker.handlers.authorization import by_handler, on_group, on_topic, requires
from mockbroker.handlers.base import CombinedReply, Parked, api
from mockbroker.handlers.leader_hints import LeaderHints
from mockbroker.handlers.share_fetch_read import ShareFetched, ShareFetchReader, rotated
from mockbroker.handlers.share_requests import (
    HINTED,
    RENEW_SINCE,
    Acknowledged,
    Acknowledgements,
    TopicAccess,
    lock_duration_ms,
    refused,
    target_of,
)
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE, begin
from mockbroker.handlers.throttling import record_fetch
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext

_ACQUIRE_MODES = frozenset(map(int, AcquireMode))


@api(
    ApiKey.SHARE_FETCH,
    versions=(1, 2),
    authorize=by_handler(
        requires(on_group(AclOperation.READ), otherwise="`GROUP_AUTHORIZATION_FAILED`"),
        requires(on_topic(AclOperation.READ)),
    ),
)
def share_fetch(
    ctx: RequestContext, request: ShareFetchRequest
) -> ShareFetchResponse | Parked[ShareFetchResponse]:
    """Answer at once, or wait for `min_bytes` for at most `max_wait_ms`."""
    error = refused(ctx, request.group_id, request.member_id)
    renews = ctx.api_version >= RENEW_SINCE and request.is_renew_ack
    if error is None and renews and _wants_records(request):
        error = ErrorCode.INVALID_REQUEST
    if error is not None:
        return ShareFetchResponse(error_code=error)
    try:
        context = _open_context(ctx, request)
    except ApiError as invalid:
        if invalid.error is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _answer_later(ctx, request, invalid.error)
        return ShareFetchResponse(error_code=invalid.error)
    access = TopicAccess(ctx)
    try:
        access.check_names((*context.targets, *_targets(ctx, request)))
    except ApiError as nameless:
        return ShareFetchResponse(error_code=nameless.error)
    return _ShareFetch(ctx, request, context, access).start(fetches=not renews)


def _wants_records(request: ShareFetchRequest) -> bool:
    return bool(
        request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms
    )


def _has_acknowledgements(request: ShareFetchRequest) -> bool:
    return any(
        partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    )


def _targets(ctx: RequestContext, request: ShareFetchRequest) -> list[ShareTarget]:
    return [
        target_of(ctx, topic.topic_id, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]


def _open_context(ctx: RequestContext, request: ShareFetchRequest) -> ShareFetchContext:
    forgotten = [
        target_of(ctx, topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    assert request.group_id is not None
    assert request.member_id is not None
    return ctx.broker.share_partitions.sessions.open_context(
        (request.group_id, request.member_id),
        request.share_session_epoch,
        _targets(ctx, request),
        forgotten,
        acknowledges=_has_acknowledgements(request),
        connection_id=ctx.connection.id,
    )


def _answer_later(
    ctx: RequestContext, request: ShareFetchRequest, error: ErrorCode
) -> Parked[ShareFetchResponse]:
    """Without room for a session the client waits as long as for records: it would not pause."""
    parked: Parked[ShareFetchResponse] = Parked()
    answer = partial(parked.complete, ShareFetchResponse(error_code=error))
    timers = ctx.cluster.runtime.timers
    timers.call_at(ctx.now_ms + max(request.max_wait_ms, 0), answer)
    return parked


class _ShareFetch:
    """One request with a valid session: the parts of its answer."""

    def __init__(
        self,
        ctx: RequestContext,
        request: ShareFetchRequest,
        context: ShareFetchContext,
        access: TopicAccess,
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._context = context
        self._access = access
        self._named = ctx.image.topics_by_id
        self._fetched: list[ShareFetched] = []
        self._errors: list[ShareFetched] = []
        self._acknowledged: list[Acknowledged] = []
        self._answer: CombinedReply[ShareFetchResponse] = CombinedReply(2, self._respond)

    def start(self, *, fetches: bool) -> ShareFetchResponse | Parked[ShareFetchResponse]:
        request, reply = self._request, self._answer.reply
        assert request.group_id is not None
        assert request.member_id is not None
        if _has_acknowledgements(request):
            Acknowledgements(
                self._ctx,
                request.group_id,
                request.member_id,
                self._access,
                self._take_acknowledged,
                is_renew=request.is_renew_ack,
            ).start(request.topics)
        else:
            self._take_acknowledged([])
        if fetches:
            self._fetch()
        else:
            self._take_fetched([])
        return reply.response if reply.done else reply

    def _take_acknowledged(self, rows: list[Acknowledged]) -> None:
        self._acknowledged = rows
        self._answer.part_done()

    def _take_fetched(self, rows: list[ShareFetched]) -> None:
        self._fetched = rows
        self._answer.part_done()

    # -- fetching ----------------------------------------------------------------------------------

    def _fetch(self) -> None:
        readable = [target for target in self._context.targets if self._is_readable(target)]
        request = self._request
        shares: dict[ShareTarget, SharePartition] = {}
        reader = ShareFetchReader(self._ctx, request, shares)
        if readable and request.share_acquire_mode not in _ACQUIRE_MODES:
            # ShareAcquireMode.forId throws for the whole request.
            self._answer.reply.complete(
                ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            )
            return
        if not readable or request.max_records == 0 or reader.bytes_max == 0:
            self._take_fetched([])
            return
        targets = rotated(readable, request.share_session_epoch)
        self._begin(self._open(targets, shares, reader))

    def _open(
        self,
        targets: Sequence[ShareTarget],
        shares: dict[ShareTarget, SharePartition],
        reader: ShareFetchReader,
    ) -> Generator[None, None, None]:
        """Get the share partitions, very many in turns; then read, or wait."""
        for start in range(0, len(targets), PARTITIONS_PER_SLICE):
            if start:
                yield
            for target in targets[start : start + PARTITIONS_PER_SLICE]:
                self._add_share_partition(target, shares, reader.errors)
        self._read_or_wait(targets, shares, reader)

    def _read_or_wait(
        self,
        targets: Sequence[ShareTarget],
        shares: dict[ShareTarget, SharePartition],
        reader: ShareFetchReader,
    ) -> None:
        if len(reader.errors) == len(targets):
            self._begin(self._read(reader))
            return
        request = self._request
        waiting = DelayedShareFetch(
            self._ctx, reader, shares, lambda: self._begin(self._read(reader))
        )
        if not waiting.start(request.max_wait_ms) and self._ctx.cluster.config(FETCH_YIELDS):
            self._answer.reply.force_complete = waiting.force_complete

    def _read(self, reader: ShareFetchReader) -> Generator[None, None, None]:
        self._take_fetched((yield from reader.read()))

    def _begin(self, work: Generator[None, None, None]) -> None:
        begin(self._ctx, self._request, work, self._answer.reply)

    def _is_readable(self, target: ShareTarget) -> bool:
        """Whether the topic exists and may be read; otherwise its error is noted."""
        if target.topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not self._access.allows(target.topic):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif self._ctx.image.partition(target.topic, target.partition) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            return True
        self._errors.append((target, PartitionData(target.partition, error, records=b"")))
        return False

    def _add_share_partition(
        self,
        target: ShareTarget,
        shares: dict[ShareTarget, SharePartition],
        errors: dict[ShareTarget, ErrorCode],
    ) -> None:
        """Get the share partition of a target, and initialize it if that is not done."""
        manager = self._ctx.broker.share_partitions
        group_id, member_id = self._request.group_id, self._request.member_id
        assert group_id is not None
        assert member_id is not None
        manager.release_left((group_id, member_id), target.key)
        try:
            share = shares[target] = manager.get_or_create(group_id, target)
        except ApiError as error:
            errors[target] = error.error
            return
        is_late = False

        def initialized(error: ApiError | None) -> None:
            if error is not None and manager.initialization_failed(share, error):
                errors[target] = error.error
            if is_late:
                share.notify()

        share.initialize(initialized)
        is_late = True

    # -- answering ---------------------------------------------------------------------------------

    def _respond(self) -> ShareFetchResponse:
        """Both parts are there. The session is closed now, if the epoch is -1."""
        ctx, request = self._ctx, self._request
        assert request.group_id is not None
        assert request.member_id is not None
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=lock_duration_ms(ctx, request.group_id)
        )
        rows = [*self._fetched, *self._errors]
        hints = LeaderHints(ctx)
        for target, data in rows:
            self._add_hint(hints, target, data)
        response.node_endpoints = hints.endpoints(NodeEndpoint)
        if not self._context.is_current:
            response.error_code = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        else:
            response.responses = _by_topic(self._rows_to_send(rows))
            wait_ms = record_fetch(ctx, response)
            if wait_ms > 0:
                response.responses, response.throttle_time_ms = [], wait_ms
            else:
                self._mark_answered(rows)
                if any(topic.topic_id not in self._named for topic in response.responses):
                    # BrokerTopicStats counts the bytes of a topic by its name, and throws here.
                    return ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        self._add_acknowledged(response)
        if request.share_session_epoch == FINAL_EPOCH:
            key = request.group_id, request.member_id
            ctx.broker.share_partitions.release_session(key)
        return response

    def _rows_to_send(self, rows: list[ShareFetched]) -> list[ShareFetched]:
        session = self._context.session
        return [
            (target, data)
            for target, data in rows
            if session is None or data.records or data.error_code or session.must_send(target.key)
        ]

    def _mark_answered(self, rows: list[ShareFetched]) -> None:
        if self._context.session is not None:
            for target, data in rows:
                self._context.session.answered(
                    target.key, has_records=bool(data.records), failed=data.error_code != 0
                )

    def _add_hint(self, hints: LeaderHints, target: ShareTarget, data: PartitionData) -> None:
        if data.error_code in HINTED:
            partition = self._ctx.image.partition(target.topic or "", target.partition)
            if partition is not None:
                data.current_leader = LeaderIdAndEpoch(*hints.add_leader(partition))

    def _add_acknowledged(self, response: ShareFetchResponse) -> None:
        """Put the results of the acknowledgements beside those of the fetch."""
        if not self._acknowledged:
            return
        topics = {topic.topic_id: topic for topic in response.responses}
        rows = {
            (topic.topic_id, data.partition_index): data
            for topic in response.responses
            for data in topic.partitions
        }
        for target, error, message in self._acknowledged:
            topic = topics.get(target.topic_id)
            if topic is None:
                topic = ShareFetchableTopicResponse(target.topic_id, [])
                topics[target.topic_id] = topic
                response.responses.append(topic)
            data = rows.get(target.key)
            if data is None:
                data = rows[target.key] = PartitionData(target.partition, records=b"")
                topic.partitions.append(data)
            data.acknowledge_error_code, data.acknowledge_error_message = error, message


def _by_topic(rows: list[ShareFetched]) -> list[ShareFetchableTopicResponse]:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for target, data in rows:
        topic = topics.setdefault(target.topic_id, ShareFetchableTopicResponse(target.topic_id, []))
        topic.partitions.append(data)
    return list(topics.values())


class DelayedShareFetch(DelayedOperation):
    """A fetch that waits for bytes, or for records that are Available again.

    It reads when it completes. A share partition that is fenced meanwhile is left out; the client
    learns of the new leader with its next request.
    """

    __slots__ = ("_ctx", "_read", "_reader", "_shares")

    def __init__(
        self,
        ctx: RequestContext,
        reader: ShareFetchReader,
        shares: Mapping[ShareTarget, SharePartition],
        read: Callable[[], None],
    ) -> None:
        super().__init__()
        self._ctx = ctx
        self._reader = reader
        self._shares = shares
        self._read = read

    def start(self, wait_ms: int) -> bool:
        """Complete now, or wait for a change at most for `wait_ms`; returns whether it is done."""
        if wait_ms <= 0 or self._reader.must_answer:
            self.force_complete()
            return True
        keys: list[Watchable] = []
        for share in self._shares.values():
            keys += (share, share.partition)
        timers = self._ctx.cluster.runtime.timers
        self.watch(keys, timers, self._ctx.now_ms + wait_ms)
        return False

    def try_complete(self, changed: Partition) -> None:
        if self._reader.must_answer_after(changed):
            self.force_complete()

    def on_complete(self) -> None:
        self._read()
