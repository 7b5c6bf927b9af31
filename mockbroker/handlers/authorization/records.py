"""Records: who may write, read and delete them, and learn how far they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from mockbroker.core.security.acls import Operation
from mockbroker.core.topic import why_invalid_name
from mockbroker.handlers.authorization.access import (
    Access,
    Go,
    after,
    cluster,
    guard,
    needs,
    split,
    topic,
    transactional_id,
)
from mockbroker.handlers.base import CLOSE_CONNECTION, NO_RESPONSE, Outcome
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopicResult,
)
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
    TopicResponse,
)
from mockbroker_protocol.messages.fetch import FetchRequest
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopicResponse,
)
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderTopicResult,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from mockbroker_protocol.records import HEADER_SIZE, BatchHeader
from mockbroker_protocol.records.batch import TRANSACTIONAL_MASK

O = Operation  # noqa: E741 - as in the tables of Kafka
TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
TRANSACTION_DENIED = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
PRODUCE_IDS_SINCE = 13
MAGIC = 2

_OF_TOPIC = "`TOPIC_AUTHORIZATION_FAILED` for it"

W = TypeVar("W")

# -- Produce ---------------------------------------------------------------------------------------


@guard(
    ApiKey.PRODUCE,
    needs(
        transactional_id(O.WRITE),
        about="if the records are transactional",
        otherwise="`TRANSACTIONAL_ID_AUTHORIZATION_FAILED` for all",
    ),
    needs(topic(O.WRITE), about="each", otherwise=_OF_TOPIC),
)
def produce(access: Access, request: ProduceRequest, go: Go) -> object:
    """With acks=0 a refusal can only be told by closing the connection."""
    wanted = request.topic_data
    if (
        request.transactional_id is not None
        and _is_transactional(wanted)
        and not access.transactional_id(O.WRITE, request.transactional_id)
    ):
        return _produce_refused(request, wanted, TRANSACTION_DENIED)
    granted, denied = split(wanted, lambda t: _may_write(access, t))
    if not denied:
        return go(request)
    if not granted:
        return _produce_refused(request, denied, TOPIC_DENIED)
    refused = [_refused_topic(t, TOPIC_DENIED) for t in denied]

    def tell(response: ProduceResponse | Outcome) -> ProduceResponse | Outcome:
        if isinstance(response, Outcome):
            return CLOSE_CONNECTION if response is NO_RESPONSE else response
        response.responses = [*response.responses, *refused]
        return response

    return after(go(msgspec.structs.replace(request, topic_data=granted)), tell)


def _may_write(access: Access, wanted: TopicProduceData) -> bool:
    """Of a topic id that nobody has, the handler tells that it is unknown."""
    name = wanted.name
    if access.ctx.api_version >= PRODUCE_IDS_SINCE:
        found = access.ctx.image.topics_by_id.get(wanted.topic_id)
        if found is None:
            return True
        name = found.name
    return access.topic(O.WRITE, name)


def _is_transactional(topics: list[TopicProduceData]) -> bool:
    """Whether any batch says that it is part of a transaction."""
    for wanted in topics:
        for data in wanted.partition_data:
            view = cast("memoryview", data.records or memoryview(b""))
            if len(view) >= HEADER_SIZE:
                header = BatchHeader(view)
                if header.magic == MAGIC and header.attributes & TRANSACTIONAL_MASK:
                    return True
    return False


def _produce_refused(
    request: ProduceRequest, topics: list[TopicProduceData], error: int
) -> ProduceResponse | Outcome:
    if request.acks == 0:
        return CLOSE_CONNECTION
    return ProduceResponse([_refused_topic(t, error) for t in topics])


def _refused_topic(wanted: TopicProduceData, error: int) -> TopicProduceResponse:
    return TopicProduceResponse(
        wanted.name,
        wanted.topic_id,
        [PartitionProduceResponse(data.index, error, -1) for data in wanted.partition_data],
    )


# -- Fetch -----------------------------------------------------------------------------------------


@guard(
    ApiKey.FETCH,
    needs(topic(O.READ), about="each, for consumers", otherwise=_OF_TOPIC),
    needs(
        cluster(O.CLUSTER_ACTION),
        about="for followers",
        otherwise="`TOPIC_AUTHORIZATION_FAILED` for all",
    ),
)
def fetch(access: Access, request: FetchRequest, go: Go) -> object:  # noqa: ARG001
    """Asked by the handler, which knows what is in the fetch session (`may_fetch`)."""
    return go(request)


def may_fetch(access: Access, name: str, *, from_follower: bool) -> bool:
    """Whether the client may fetch from a topic: a follower from any, or from none."""
    return access.cluster(O.CLUSTER_ACTION) if from_follower else access.topic(O.READ, name)


# -- one answer for each topic ---------------------------------------------------------------------


def _with_refusals(
    request: Any,
    topics: list[W],
    allowed: Callable[[W], bool],
    refusal: Callable[[W], object],
    go: Go,
) -> object:
    """Have the handler answer for the topics that are allowed; put the refusals behind."""
    granted, denied = split(topics, allowed)
    if not denied:
        return go(request)

    def tell(response: Any) -> Any:
        response.topics = [*response.topics, *map(refusal, denied)]
        return response

    return after(go(msgspec.structs.replace(request, topics=granted)), tell)


@guard(ApiKey.LIST_OFFSETS, needs(topic(O.DESCRIBE), about="each", otherwise=_OF_TOPIC))
def list_offsets(access: Access, request: ListOffsetsRequest, go: Go) -> object:
    return _with_refusals(
        request,
        request.topics,
        lambda t: access.topic(O.DESCRIBE, t.name),
        lambda t: ListOffsetsTopicResponse(
            t.name,
            [ListOffsetsPartitionResponse(p.partition_index, TOPIC_DENIED) for p in t.partitions],
        ),
        go,
    )


@guard(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    needs(cluster(O.CLUSTER_ACTION), topic(O.DESCRIBE), about="each", otherwise=_OF_TOPIC),
)
def offset_for_leader_epoch(access: Access, request: OffsetForLeaderEpochRequest, go: Go) -> object:
    return _with_refusals(
        request,
        request.topics,
        lambda t: access.cluster(O.CLUSTER_ACTION) or access.topic(O.DESCRIBE, t.topic),
        lambda t: OffsetForLeaderTopicResult(
            t.topic, [EpochEndOffset(TOPIC_DENIED, p.partition) for p in t.partitions]
        ),
        go,
    )


@guard(ApiKey.DELETE_RECORDS, needs(topic(O.DELETE), about="each", otherwise=_OF_TOPIC))
def delete_records(access: Access, request: DeleteRecordsRequest, go: Go) -> object:
    return _with_refusals(
        request,
        request.topics,
        lambda t: access.topic(O.DELETE, t.name),
        lambda t: DeleteRecordsTopicResult(
            t.name,
            [
                DeleteRecordsPartitionResult(p.partition_index, -1, TOPIC_DENIED)
                for p in t.partitions
            ],
        ),
        go,
    )


@guard(ApiKey.DESCRIBE_PRODUCERS, needs(topic(O.READ), about="each", otherwise=_OF_TOPIC))
def describe_producers(access: Access, request: DescribeProducersRequest, go: Go) -> object:
    """Whether a name can be one is looked at first."""
    message = ErrorCode.TOPIC_AUTHORIZATION_FAILED.sentence

    def allowed(wanted: TopicRequest) -> bool:
        return why_invalid_name(wanted.name) is not None or access.topic(O.READ, wanted.name)

    def tell(response: DescribeProducersResponse) -> DescribeProducersResponse:
        found = iter(response.topics)
        response.topics = [
            next(found)
            if allowed(t)
            else TopicResponse(
                t.name, [PartitionResponse(i, TOPIC_DENIED, message) for i in t.partition_indexes]
            )
            for t in request.topics
        ]
        return response

    granted = [t for t in request.topics if allowed(t)]
    return after(go(msgspec.structs.replace(request, topics=granted)), tell)
