"""Transactions: who may use a transactional id, and who may see or end those of others."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mockbroker.core.security.acls import Operation
from mockbroker.core.topic import INTERNAL_TOPICS
from mockbroker.handlers.authorization.access import (
    Access,
    Go,
    after,
    cluster,
    group,
    guard,
    needs,
    split,
    topic,
    transactional_id,
)
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import describe_transactions as describing
from mockbroker_protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from mockbroker_protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from mockbroker_protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from mockbroker_protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from mockbroker_protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

O = Operation  # noqa: E741 - as in the tables of Kafka
CLUSTER_DENIED = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
GROUP_DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
TRANSACTION_DENIED = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

ADD_BATCHES_SINCE = 4
NOT_ATTEMPTED = int(ErrorCode.OPERATION_NOT_ATTEMPTED)
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

_OF_ID = "`TRANSACTIONAL_ID_AUTHORIZATION_FAILED`"


@guard(
    ApiKey.INIT_PRODUCER_ID,
    needs(transactional_id(O.WRITE), about="if there is one", otherwise=_OF_ID),
    needs(
        cluster(O.IDEMPOTENT_WRITE),
        topic(O.WRITE),
        about="any one, for a producer that is idempotent only",
        otherwise="`CLUSTER_AUTHORIZATION_FAILED`",
    ),
)
def init_producer_id(access: Access, request: InitProducerIdRequest, go: Go) -> object:
    if request.transactional_id is not None:
        allowed = access.transactional_id(O.WRITE, request.transactional_id)
        error = TRANSACTION_DENIED
    else:
        allowed = access.cluster(O.IDEMPOTENT_WRITE) or access.any_topic(O.WRITE)
        error = CLUSTER_DENIED
    if allowed:
        return go(request)
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


@guard(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    needs(transactional_id(O.WRITE), about="for producers", otherwise=f"{_OF_ID} for all"),
    needs(
        topic(O.WRITE),
        about="each, for producers",
        otherwise="`TOPIC_AUTHORIZATION_FAILED` for it, nothing is added",
    ),
    needs(
        cluster(O.CLUSTER_ACTION),
        about="for brokers, since v4",
        otherwise="`CLUSTER_AUTHORIZATION_FAILED`",
    ),
)
def add_partitions_to_txn(access: Access, request: AddPartitionsToTxnRequest, go: Go) -> object:
    """Since v4 brokers ask, for clients whose right to write they have checked."""
    if access.ctx.api_version >= ADD_BATCHES_SINCE:
        if access.cluster(O.CLUSTER_ACTION):
            return go(request)
        return AddPartitionsToTxnResponse(error_code=CLUSTER_DENIED)
    topics = request.v3_and_below_topics
    if not access.transactional_id(O.WRITE, request.v3_and_below_transactional_id):
        return _added(topics, lambda _name, _index: TRANSACTION_DENIED)
    denied = {
        t.name for t in topics if t.name in INTERNAL_TOPICS or not access.topic(O.WRITE, t.name)
    }
    if not denied:
        return go(request)
    known = access.ctx.image.partition

    def error(name: str, index: int) -> int:
        if name in denied:
            return TOPIC_DENIED
        return UNKNOWN if known(name, index) is None else NOT_ATTEMPTED

    return _added(topics, error)


def _added(
    topics: list[AddPartitionsToTxnTopic], error: Callable[[str, int], int]
) -> AddPartitionsToTxnResponse:
    """One error code for each partition."""
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                t.name,
                [AddPartitionsToTxnPartitionResult(i, error(t.name, i)) for i in t.partitions],
            )
            for t in topics
        ]
    )


@guard(
    ApiKey.ADD_OFFSETS_TO_TXN,
    needs(transactional_id(O.WRITE), otherwise=_OF_ID),
    needs(group(O.READ), otherwise="`GROUP_AUTHORIZATION_FAILED`"),
)
def add_offsets_to_txn(access: Access, request: AddOffsetsToTxnRequest, go: Go) -> object:
    if not access.transactional_id(O.WRITE, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=TRANSACTION_DENIED)
    if not access.group(O.READ, request.group_id):
        return AddOffsetsToTxnResponse(error_code=GROUP_DENIED)
    return go(request)


@guard(ApiKey.END_TXN, needs(transactional_id(O.WRITE), otherwise=_OF_ID))
def end_txn(access: Access, request: EndTxnRequest, go: Go) -> object:
    if access.transactional_id(O.WRITE, request.transactional_id):
        return go(request)
    return EndTxnResponse(error_code=TRANSACTION_DENIED)


@guard(
    ApiKey.WRITE_TXN_MARKERS,
    needs(
        cluster(O.ALTER),
        cluster(O.CLUSTER_ACTION),
        otherwise="`CLUSTER_AUTHORIZATION_FAILED` for every partition",
    ),
)
def write_txn_markers(access: Access, request: WriteTxnMarkersRequest, go: Go) -> object:
    if access.cluster(O.ALTER) or access.cluster(O.CLUSTER_ACTION):
        return go(request)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        t.name,
                        [
                            WritableTxnMarkerPartitionResult(index, CLUSTER_DENIED)
                            for index in t.partition_indexes
                        ],
                    )
                    for t in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


@guard(
    ApiKey.DESCRIBE_TRANSACTIONS,
    needs(transactional_id(O.DESCRIBE), about="each", otherwise=f"{_OF_ID} for it"),
    needs(topic(O.DESCRIBE), about="each that takes part", otherwise="left out"),
)
def describe_transactions(access: Access, request: DescribeTransactionsRequest, go: Go) -> object:
    asked = request.transactional_ids
    granted, _ = split(asked, lambda each: access.transactional_id(O.DESCRIBE, each))

    def tell(response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
        for state in response.transaction_states:
            state.topics = [t for t in state.topics if access.topic(O.DESCRIBE, t.topic)]
        found = iter(response.transaction_states)
        response.transaction_states = [
            next(found)
            if access.transactional_id(O.DESCRIBE, each)
            else describing.TransactionState(TRANSACTION_DENIED, each)
            for each in asked
        ]
        return response

    return after(go(msgspec.structs.replace(request, transactional_ids=granted)), tell)


@guard(
    ApiKey.LIST_TRANSACTIONS,
    needs(transactional_id(O.DESCRIBE), about="each", otherwise="left out"),
)
def list_transactions(access: Access, request: ListTransactionsRequest, go: Go) -> object:
    def hide(response: ListTransactionsResponse) -> ListTransactionsResponse:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if access.transactional_id(O.DESCRIBE, state.transactional_id)
        ]
        return response

    return after(go(request), hide)
