"""Produce (key 0): append batches to the partitions this broker leads.

A request is first read as a whole, because some faults refuse all of it (KafkaApis,
ProduceRequest); then each partition is checked and appended to in turn (ReplicaManager,
`Partition.append`). With acks=all the answer waits for the high watermark: at once when the
followers are caught up, else the reply is parked and watches its partitions until they have it, the
leader changes, or time is up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from mockbroker.core.partition import ACKS_ALL, AppendResult, Partition
from mockbroker.handlers.base import CLOSE_CONNECTION, NO_RESPONSE, Outcome, Parked, api
from mockbroker.handlers.leader_hints import LeaderHints
from mockbroker.handlers.produce_records import RequestRefused, open_records
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
from mockbroker_protocol.records.batch import TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from mockbroker.core.topic import Topic
    from mockbroker.core.txn.gate import Verdict
    from mockbroker.handlers.base import RequestContext
    from mockbroker_protocol.records import BatchHeader

ADMIN_CLIENT_ID = "__admin_client"  # AdminUtils.ADMIN_CLIENT_ID may write to internal topics
TOPIC_IDS_SINCE = 13
LEADER_HINTS_SINCE = 10
ACKS = (-1, 0, 1)

_NONE = 0
_UNKNOWN_TOPIC_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
_UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_INVALID_TOPIC = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
_INVALID_ACKS = int(ErrorCode.INVALID_REQUIRED_ACKS)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_NOT_ENOUGH_AFTER_APPEND = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
_REQUEST_TIMED_OUT = int(ErrorCode.REQUEST_TIMED_OUT)
_CORRUPT = int(ErrorCode.CORRUPT_MESSAGE)
_NO_TXN_RIGHT = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

Reply = ProduceResponse | Parked[ProduceResponse] | Outcome


class _Entry(Struct, frozen=True, gc=False):
    """One partition of a request, its records opened. An `error` stands in for what is missing."""

    response: PartitionProduceResponse
    topic: Topic | None
    partition: Partition | None
    batch: memoryview | None
    header: BatchHeader | None
    error: int


@api(ApiKey.PRODUCE, versions=(3, 13), advertised_min=0)
def produce(ctx: RequestContext, request: ProduceRequest) -> Reply:
    """Append each partition's batch and answer with its place in the log."""
    response = ProduceResponse()
    try:
        entries = _open(ctx, request, response)
    except RequestRefused as refused:
        return _refuse_all(request, refused)
    if entries is None:
        # A real broker fails on null records in a way that leaves the request without an answer
        # and the connection muted for good: a reply that never completes is just that.
        return Parked()
    transactional_id = request.transactional_id
    if transactional_id is None:
        return _append_all(ctx, request, response, entries, None)
    from mockbroker.handlers.produce_transactional import through_gate

    try:
        return through_gate(
            ctx,
            transactional_id,
            _transactional(entries),
            lambda verdict: _append_all(ctx, request, response, entries, verdict),
        )
    except RequestRefused as refused:
        return _refuse_all(request, refused)


def _transactional(entries: list[_Entry]) -> Iterator[tuple[Partition, BatchHeader]]:
    """The batches that belong to a transaction, with their partitions."""
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
    verdict: Verdict | None,
) -> Reply:
    """Append what may be appended; `verdict` is the coordinator's on transactional batches."""
    hints = LeaderHints(ctx)
    waiting: list[_Waiting] = []
    touched: list[Partition] = []
    failed = False
    acks = request.acks
    journal, node_id = ctx.cluster.journal, ctx.broker.node_id
    for entry in entries:
        error = entry.error or _refusal(ctx, entry, acks, verdict)
        partition = entry.partition
        if error or partition is None or entry.batch is None or entry.header is None:
            failed = True
            _fail(ctx, entry, error or _CORRUPT, hints)
            continue
        guard = None
        if verdict is not None:
            guard = verdict.guard((partition.topic.name, partition.index))
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
                partition.index,
                result.base_offset,
                entry.header,
            )
        if acks == ACKS_ALL and partition.high_watermark <= result.last_offset:
            waiting.append(_Waiting(partition, result.last_offset + 1, entry.response))
    for partition in touched:
        partition.notify()
    if acks == 0:
        return CLOSE_CONNECTION if failed else NO_RESPONSE
    if waiting:
        return _PendingProduce(ctx, request.timeout_ms, response, waiting, hints).start()
    if failed:
        response.node_endpoints = hints.endpoints(NodeEndpoint)
    return response


def _open(
    ctx: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> list[_Entry] | None:
    """Open the records of every partition; None when some are null.

    Raises RequestRefused for a fault that refuses the request as a whole.
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
                raise RequestRefused(_NO_TXN_RIGHT, None)
            entries.append(entry)
            if entry.partition is not None and data.records is None:
                null_records = True
    return None if null_records else entries


def _merged(topics: list[TopicProduceData], *, by_id: bool) -> list[TopicProduceData]:
    """Each topic and partition once: what is named again takes the place of what came before."""
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


def _refusal(ctx: RequestContext, entry: _Entry, acks: int, verdict: Verdict | None) -> int:
    """What keeps the batch from being handed to the log at all."""
    topic, partition = entry.topic, entry.partition
    if topic is None or partition is None:
        return _UNKNOWN_TOPIC_OR_PARTITION
    if verdict is not None and verdict.errors:
        error = verdict.errors.get((topic.name, partition.index), _NONE)
        if error:
            from mockbroker.handlers.produce_transactional import error_and_message

            error, entry.response.error_message = error_and_message(error, ctx.api_version)
            return error
    if acks not in ACKS:
        return _INVALID_ACKS
    if topic.is_internal and ctx.client_id != ADMIN_CLIENT_ID:
        return _INVALID_TOPIC
    if partition.leader_id != ctx.broker.node_id:
        return _STORAGE_ERROR if ctx.broker.log_dirs.lost(partition) else _NOT_LEADER
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
        response.current_leader = LeaderIdAndEpoch(*hints.mention(partition))


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


def _refuse_all(request: ProduceRequest, refused: RequestRefused) -> Reply:
    """One error for every partition; with acks=0 the connection is closed."""
    if request.acks == 0:
        return CLOSE_CONNECTION
    if any(data.records is None for topic in request.topic_data for data in topic.partition_data):
        return Parked()  # the error response itself fails on null records
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [
                    PartitionProduceResponse(
                        data.index, refused.error, -1, error_message=refused.message
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


class _Waiting(NamedTuple):
    """A partition whose high watermark has to reach `required_offset`."""

    partition: Partition
    required_offset: int
    response: PartitionProduceResponse


class _PendingProduce:
    """A reply that waits for the high watermarks (DelayedProduce)."""

    __slots__ = ("_context", "_hints", "_parked", "_response", "_timer", "_waiting")

    def __init__(
        self,
        context: RequestContext,
        timeout_ms: int,
        response: ProduceResponse,
        waiting: list[_Waiting],
        hints: LeaderHints,
    ) -> None:
        self._context = context
        self._response = response
        self._waiting = waiting
        self._hints = hints
        self._parked: Parked[ProduceResponse] = Parked()
        self._timer = context.cluster.timers.call_at(context.now_ms + timeout_ms, self._time_out)

    def start(self) -> Parked[ProduceResponse]:
        for item in self._waiting:
            item.partition.watch(self)
        return self._parked

    def partition_changed(self, partition: Partition) -> None:
        for item in [item for item in self._waiting if item.partition is partition]:
            error = self._outcome(item)
            if error is None:
                continue
            item.response.error_code = error
            if error == _NOT_LEADER:
                _hint(self._context, item.response, partition, self._hints)
            self._waiting.remove(item)
        if all(item.partition is not partition for item in self._waiting):
            partition.unwatch(self)
        if not self._waiting:
            self._finish()

    def _outcome(self, item: _Waiting) -> int | None:
        """The error code that settles one partition, or None while it has to wait on."""
        partition = item.partition
        if partition.deleted:
            return _UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader_id != self._context.broker.node_id:
            return _NOT_LEADER
        if partition.high_watermark < item.required_offset:
            return None
        return _NOT_ENOUGH_AFTER_APPEND if partition.under_min_isr else _NONE

    def _time_out(self) -> None:
        for item in self._waiting:
            item.response.error_code = _REQUEST_TIMED_OUT
            item.partition.unwatch(self)
        self._finish()

    def _finish(self) -> None:
        self._timer.cancel()
        self._response.node_endpoints = self._hints.endpoints(NodeEndpoint)
        self._parked.complete(self._response)
