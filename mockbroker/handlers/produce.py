"""Produce (0): append batches to the partitions that this broker leads.

The whole request is read first, because some faults refuse all of it (KafkaApis, ProduceRequest).
Then each batch is checked and appended in turn (ReplicaManager, `Partition.append`). With acks=all
the response waits for the high watermark. If the followers are not caught up, the reply is parked
and watches its partitions until they are, the leader changes, or the timeout is over.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from mockbroker.core.errors import ApiError
from mockbroker.core.purgatory.delayed_replication import DelayedReplication
from mockbroker.core.replication.partition import ACKS_ALL, AppendResult, Partition
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    Handle,
    checked,
    on_topic,
    on_transactional_id,
    requires,
    split,
    when_done,
)
from mockbroker.handlers.base import (
    CLOSE_CONNECTION,
    NO_RESPONSE,
    Outcome,
    Parked,
    api,
    unanswered,
)
from mockbroker.handlers.leader_hints import LeaderHints
from mockbroker.handlers.produce_records import open_records
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE, in_slices, settled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from mockbroker_protocol.records import HEADER_SIZE, BatchHeader
from mockbroker_protocol.records.batch import TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from mockbroker.core.metadata.topic import Topic
    from mockbroker.core.txn.verification import VerifiedPartitions
    from mockbroker.handlers.base import RequestContext

ADMIN_CLIENT_ID = "__admin_client"  # AdminUtils.ADMIN_CLIENT_ID may write to internal topics
TOPIC_IDS_SINCE = 13
LEADER_HINTS_SINCE = 10
ACKS = (-1, 0, 1)
NULL_RECORDS = "records are null"
MAGIC = 2

_NONE = 0
_UNKNOWN_TOPIC_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
_UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_INVALID_TOPIC = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
_INVALID_ACKS = int(ErrorCode.INVALID_REQUIRED_ACKS)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_NOT_ENOUGH_AFTER_APPEND = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
_CORRUPT = int(ErrorCode.CORRUPT_MESSAGE)

Reply = ProduceResponse | Parked[ProduceResponse | Outcome] | Outcome


class _Entry(Struct, frozen=True, gc=False):
    """One partition of a request, with the header of its batch; `error` if something is missing."""

    response: PartitionProduceResponse
    topic: Topic | None
    partition: Partition | None
    batch: memoryview | None
    header: BatchHeader | None
    error: int


def _authorize(auth: AuthHelper, request: ProduceRequest, handle: Handle) -> object:
    """Without acks the connection is closed in place of an error."""
    ctx, wanted = auth.ctx, request.topic_data
    if (
        request.transactional_id is not None
        and _is_transactional(wanted)
        and not auth.transactional_id(AclOperation.WRITE, request.transactional_id)
    ):
        return ctx.refusal(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    by_id = ctx.api_version >= TOPIC_IDS_SINCE
    granted, denied = split(
        wanted,
        lambda topic: (
            auth.topic_id(AclOperation.WRITE, topic.topic_id)
            if by_id
            else auth.topic(AclOperation.WRITE, topic.name)
        ),
    )
    if not denied:
        return handle(request)
    part = msgspec.structs.replace(request, topic_data=denied)
    refusal = ctx.refusal(part, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not granted:
        return refusal

    def add_refused(response: ProduceResponse | Outcome) -> ProduceResponse | Outcome:
        if isinstance(response, Outcome):
            return CLOSE_CONNECTION if response is NO_RESPONSE else response
        response.responses = [*response.responses, *refusal.responses]
        return response

    return when_done(handle(msgspec.structs.replace(request, topic_data=granted)), add_refused)


def _is_transactional(topics: list[TopicProduceData]) -> bool:
    """Whether any batch is transactional."""
    for wanted in topics:
        for data in wanted.partition_data:
            view = cast("memoryview", data.records or memoryview(b""))
            if len(view) >= HEADER_SIZE:
                header = BatchHeader(view)
                if header.magic == MAGIC and header.attributes & TRANSACTIONAL_MASK:
                    return True
    return False


def _has_no_acks(request: ProduceRequest) -> bool:
    return request.acks == 0


@api(
    ApiKey.PRODUCE,
    versions=(3, 13),
    advertised_min=0,
    authorize=checked(
        _authorize,
        requires(
            on_transactional_id(AclOperation.WRITE),
            about="if the records are transactional",
            otherwise="`TRANSACTIONAL_ID_AUTHORIZATION_FAILED` for all",
        ),
        requires(on_topic(AclOperation.WRITE)),
    ),
    refusal=Refusal(
        fixed={"PartitionProduceResponse": {"base_offset": -1}},
        has_no_answer=_has_no_acks,
    ),
)
def produce(ctx: RequestContext, request: ProduceRequest) -> Reply:
    """Append the batch of each partition, and answer with its base offset."""
    response = ProduceResponse()
    try:
        entries = _open(ctx, request, response)
    except ApiError as refused:
        return _refuse_all(ctx, request, refused)
    if entries is None:
        return unanswered(ctx, NULL_RECORDS)
    transactional_id = request.transactional_id
    if transactional_id is None:
        return _append_all(ctx, request, response, entries, None)
    from mockbroker.handlers.produce_transactional import verify_transaction

    try:
        return verify_transaction(
            ctx,
            transactional_id,
            _transactional(entries),
            lambda verified: _append_all(ctx, request, response, entries, verified),
        )
    except ApiError as refused:
        return _refuse_all(ctx, request, refused)


def _transactional(entries: list[_Entry]) -> Iterator[tuple[Partition, BatchHeader]]:
    """The transactional batches, with their partitions."""
    for entry in entries:
        header, partition = entry.header, entry.partition
        if entry.error or header is None or partition is None:
            continue
        if header.attributes & TRANSACTIONAL_MASK and header.producer_id >= 0:
            yield partition, header


def _append_all(
    ctx: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[_Entry],
    verified: VerifiedPartitions | None,
) -> Reply:
    """Append the valid batches and answer; `verified` is the coordinator's result for transactional
    batches. Many batches are appended in slices.
    """
    if len(entries) > PARTITIONS_PER_SLICE:
        appended = _append_in_slices(ctx, request, response, entries, verified)
        return in_slices(ctx, request, appended, changes=True)
    hints = LeaderHints(ctx)
    waiting: list[ProducePartitionStatus] = []
    failed = _append(ctx, request.acks, entries, verified, hints, waiting)
    return _answer(ctx, request, response, hints, waiting, failed=failed)


def _append_in_slices(
    ctx: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    entries: list[_Entry],
    verified: VerifiedPartitions | None,
) -> Generator[Parked[Any] | None, None, ProduceResponse | Outcome]:
    hints = LeaderHints(ctx)
    waiting: list[ProducePartitionStatus] = []
    failed = False
    for start in range(0, len(entries), PARTITIONS_PER_SLICE):
        part = entries[start : start + PARTITIONS_PER_SLICE]
        failed |= _append(ctx, request.acks, part, verified, hints, waiting)
        yield None
    reply = _answer(ctx, request, response, hints, waiting, failed=failed)
    return (yield from settled(reply)) if isinstance(reply, Parked) else reply


def _append(
    ctx: RequestContext,
    acks: int,
    entries: Sequence[_Entry],
    verified: VerifiedPartitions | None,
    hints: LeaderHints,
    waiting: list[ProducePartitionStatus],
) -> bool:
    """Append the valid batches, and add those that wait for replicas to `waiting`.

    Returns whether any has failed.
    """
    touched: list[Partition] = []
    failed = False
    journal, node_id = ctx.cluster.runtime.journal, ctx.broker.node_id
    for entry in entries:
        error = entry.error or _refusal(ctx, entry, acks, verified)
        partition = entry.partition
        if error or partition is None or entry.batch is None or entry.header is None:
            failed = True
            _fail(ctx, entry, error or _CORRUPT, hints)
            continue
        guard = None
        if verified is not None:
            guard = verified.guard((partition.topic.name, partition.index))
        result = partition.append(entry.batch, entry.header, acks, ctx.now_ms, guard)
        _fill(entry.response, result)
        if result.error:
            failed = True
            continue
        touched.append(partition)
        if journal is not None and not result.duplicate:
            journal.append(
                ctx.now_ms,
                node_id,
                ctx.seq,
                partition.topic.name,
                partition.topic.topic_id,
                partition.index,
                partition.leader_epoch,
                result.base_offset,
                entry.header,
                partition.high_watermark,
            )
        if acks == ACKS_ALL and partition.high_watermark <= result.last_offset:
            waiting.append(
                ProducePartitionStatus(partition, result.last_offset + 1, entry.response)
            )
    if len(touched) > 1:
        for partition in touched:
            partition.wake_resting()
    for partition in touched:
        partition.notify()
    return failed


def _answer(
    ctx: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    hints: LeaderHints,
    waiting: list[ProducePartitionStatus],
    *,
    failed: bool,
) -> Reply:
    if request.acks == 0:
        return CLOSE_CONNECTION if failed else NO_RESPONSE
    if waiting:
        delayed = DelayedProduce(ctx, response, waiting, hints)
        delayed.start(ctx.cluster.runtime.timers, ctx.now_ms + request.timeout_ms)
        return delayed.reply
    if failed:
        response.node_endpoints = hints.endpoints(NodeEndpoint)
    return response


def _open(
    ctx: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> list[_Entry] | None:
    """Read the batch header of every partition; None if records are null.

    Raises ApiError for a fault that refuses the whole request.
    """
    by_id = ctx.header.api_version >= TOPIC_IDS_SINCE
    entries: list[_Entry] = []
    null_records = False
    for topic_data in _merged(request.topic_data, by_id=by_id):
        topic = (
            ctx.image.topics_by_id.get(topic_data.topic_id)
            if by_id
            else ctx.image.topics.get(topic_data.name)
        )
        answers: list[PartitionProduceResponse] = []
        response.responses.append(
            TopicProduceResponse(topic_data.name, topic_data.topic_id, answers)
        )
        for data in topic_data.partition_data:
            answer = PartitionProduceResponse(data.index, _NONE, -1)
            answers.append(answer)
            entry = _open_one(ctx, topic, data, answer)
            header = entry.header
            if (
                header is not None
                and header.attributes & TRANSACTIONAL_MASK
                and request.transactional_id is None
            ):
                raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
            entries.append(entry)
            if entry.partition is not None and data.records is None:
                null_records = True
    return None if null_records else entries


def _merged(topics: list[TopicProduceData], *, by_id: bool) -> list[TopicProduceData]:
    """Each topic and partition once, with its last records."""
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return topics
    merged: dict[str | bytes, dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = merged.setdefault(topic.topic_id if by_id else topic.name, {})
        for data in topic.partition_data:
            partitions[data.index] = data
    return [
        TopicProduceData("", key, list(partitions.values()))
        if isinstance(key, bytes)
        else TopicProduceData(key, partition_data=list(partitions.values()))
        for key, partitions in merged.items()
        if partitions
    ]


def _open_one(
    ctx: RequestContext,
    topic: Topic | None,
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
) -> _Entry:
    header, batch, error = open_records(data.records, ctx.header.api_version)
    if topic is None:
        return _Entry(answer, None, None, None, header, _unknown_topic(ctx))
    partitions = topic.partitions
    if not 0 <= data.index < len(partitions):
        return _Entry(answer, topic, None, None, header, _UNKNOWN_TOPIC_OR_PARTITION)
    return _Entry(answer, topic, partitions[data.index], batch, header, error)


def _unknown_topic(ctx: RequestContext) -> int:
    by_id = ctx.header.api_version >= TOPIC_IDS_SINCE
    return _UNKNOWN_TOPIC_ID if by_id else _UNKNOWN_TOPIC_OR_PARTITION


def _refusal(
    ctx: RequestContext, entry: _Entry, acks: int, verified: VerifiedPartitions | None
) -> int:
    """The error of the checks before the append, or NONE."""
    topic, partition = entry.topic, entry.partition
    if topic is None or partition is None:
        return _UNKNOWN_TOPIC_OR_PARTITION
    if verified is not None and verified.errors:
        error = verified.errors.get((topic.name, partition.index), _NONE)
        if error:
            from mockbroker.handlers.produce_transactional import error_and_message

            error, entry.response.error_message = error_and_message(error, ctx.api_version)
            return error
    if acks not in ACKS:
        return _INVALID_ACKS
    if topic.is_internal and ctx.client_id != ADMIN_CLIENT_ID:
        return _INVALID_TOPIC
    if partition.deleted:
        return _UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader_id != ctx.broker.node_id:
        return _STORAGE_ERROR if ctx.broker.log_dirs.is_offline(partition) else _NOT_LEADER
    return _NONE


def _fail(ctx: RequestContext, entry: _Entry, error: int, hints: LeaderHints) -> None:
    entry.response.error_code = error
    if error == _NOT_LEADER and entry.partition is not None:
        _hint(ctx, entry.response, entry.partition, hints)


def _hint(
    ctx: RequestContext,
    response: PartitionProduceResponse,
    partition: Partition,
    hints: LeaderHints,
) -> None:
    if ctx.header.api_version >= LEADER_HINTS_SINCE:
        response.current_leader = LeaderIdAndEpoch(*hints.add_leader(partition))


def _fill(response: PartitionProduceResponse, result: AppendResult) -> None:
    response.log_start_offset = result.log_start_offset
    if not result.error:
        response.base_offset = result.base_offset
        response.log_append_time_ms = result.log_append_time_ms
        return
    response.error_code = result.error
    refusal = result.refusal
    if refusal is not None:
        response.error_message = refusal.message
        response.record_errors = [
            BatchIndexAndErrorMessage(index, message) for index, message in refusal.record_errors
        ]


def _refuse_all(ctx: RequestContext, request: ProduceRequest, refused: ApiError) -> Reply:
    """One error for every partition; without acks the connection is closed."""
    if request.acks != 0 and any(
        data.records is None for topic in request.topic_data for data in topic.partition_data
    ):
        return unanswered(ctx, NULL_RECORDS)  # the error response fails for them, too
    refusal: Reply = ctx.refusal(request, refused.error, refused.message)
    return refusal


class ProducePartitionStatus(NamedTuple):
    """A partition whose high watermark must reach `required_offset`."""

    partition: Partition
    required_offset: int
    response: PartitionProduceResponse


class DelayedProduce(DelayedReplication[ProducePartitionStatus]):
    """A reply that waits for high watermarks."""

    __slots__ = ("_context", "_hints", "_response", "reply")

    def __init__(
        self,
        context: RequestContext,
        response: ProduceResponse,
        waiting: list[ProducePartitionStatus],
        hints: LeaderHints,
    ) -> None:
        super().__init__(waiting)
        self._context = context
        self._response = response
        self._hints = hints
        self.reply: Parked[ProduceResponse | Outcome] = Parked()

    def error_of(self, wait: ProducePartitionStatus) -> int | None:
        partition = wait.partition
        if partition.deleted:
            return _UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader_id != self._context.broker.node_id:
            return _NOT_LEADER
        if partition.high_watermark < wait.required_offset:
            return None
        return _NOT_ENOUGH_AFTER_APPEND if partition.under_min_isr else _NONE

    def set_error(self, wait: ProducePartitionStatus, error: int) -> None:
        wait.response.error_code = error
        if error == _NOT_LEADER:
            _hint(self._context, wait.response, wait.partition, self._hints)

    def on_complete(self) -> None:
        self._response.node_endpoints = self._hints.endpoints(NodeEndpoint)
        self.reply.complete(self._response)
