"""AddPartitionsToTxn (24): add partitions to transactions.

Up to v3 a producer adds partitions to its own transaction. Since v4 leaders of partitions send the
request, about several transactions: to verify that partitions were added, or (v5) to add them. If
one partition of a transaction has an error, none is added.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.topic import INTERNAL_TOPICS
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_cluster,
    on_topic,
    on_transactional_id,
    requires,
)
from mockbroker.handlers.base import Parked, RequestContext, api, fenced_error, unanswered
from mockbroker.handlers.slices import in_slices, settled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from mockbroker.core.txn.events import Result, TopicPartition

FENCED_SINCE = 2
TRANSACTIONS_PER_SLICE = 32
BATCHES_SINCE = 4
TV0, TV2 = 0, 2
NONE = ErrorCode.NONE


@api(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    versions=(0, 5),
    authorize=by_handler(
        requires(
            on_transactional_id(AclOperation.WRITE),
            about="for producers",
            otherwise="`TRANSACTIONAL_ID_AUTHORIZATION_FAILED` for all",
        ),
        requires(
            on_topic(AclOperation.WRITE),
            about="each, for producers",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for it, nothing is added",
        ),
        requires(
            on_cluster(AclOperation.CLUSTER_ACTION),
            about="for brokers, since v4",
            otherwise="`CLUSTER_AUTHORIZATION_FAILED`",
        ),
    ),
)
def add_partitions_to_txn(
    ctx: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Parked[AddPartitionsToTxnResponse]:
    """Answer once each transaction of the request has its result."""
    auth = AuthHelper(ctx)
    transactions = request.transactions
    if ctx.api_version < BATCHES_SINCE:
        transactional_id = request.v3_and_below_transactional_id
        if not auth.transactional_id(AclOperation.WRITE, transactional_id):
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    elif not auth.cluster(AclOperation.CLUSTER_ACTION):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    builder = _ResponseBuilder(ctx, transactions)
    if not transactions:
        return unanswered(ctx, "the request names no transaction; Kafka answers with the last one")
    return in_slices(ctx, request, _add_all(auth, transactions, builder), changes=True)


def _add_all(
    auth: AuthHelper, transactions: list[AddPartitionsToTxnTransaction], builder: _ResponseBuilder
) -> Generator[Parked[Any] | None, None, AddPartitionsToTxnResponse]:
    for number, transaction in enumerate(transactions):
        if number and number % TRANSACTIONS_PER_SLICE == 0:
            yield None
        _add(auth, transaction, builder)
    return (yield from settled(builder.parked))


class _ResponseBuilder:
    """Completes the response with the result of the last transaction; results come in any order."""

    __slots__ = ("_missing", "_version", "parked", "results")

    def __init__(
        self, ctx: RequestContext, transactions: list[AddPartitionsToTxnTransaction]
    ) -> None:
        self.parked: Parked[AddPartitionsToTxnResponse] = Parked()
        self.results: list[AddPartitionsToTxnResult] = []
        self._missing = len(transactions)
        self._version = ctx.api_version

    def add(
        self,
        transaction: AddPartitionsToTxnTransaction,
        partitions: Sequence[TopicPartition],
        errors: Sequence[ErrorCode],
    ) -> None:
        """One error code for each partition of a transaction."""
        topics: dict[str, AddPartitionsToTxnTopicResult] = {}
        for (topic, index), error in zip(partitions, errors, strict=True):
            result = topics.get(topic)
            if result is None:
                result = topics[topic] = AddPartitionsToTxnTopicResult(topic, [])
            code = fenced_error(error, self._version, FENCED_SINCE)
            result.results_by_partition.append(AddPartitionsToTxnPartitionResult(index, code))
        self.results.append(
            AddPartitionsToTxnResult(transaction.transactional_id, list(topics.values()))
        )
        self._missing -= 1
        if not self._missing:
            self._finish()

    def _finish(self) -> None:
        if self._version < BATCHES_SINCE:
            topics = self.results[0].topic_results
            self.parked.complete(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics))
        else:
            self.parked.complete(AddPartitionsToTxnResponse(results_by_transaction=self.results))


def _add(
    auth: AuthHelper, transaction: AddPartitionsToTxnTransaction, builder: _ResponseBuilder
) -> None:
    ctx = auth.ctx
    partitions = tuple(_each(transaction.topics))
    errors = [_partition_error(auth, key) for key in partitions]
    if any(errors):
        errors = [error or ErrorCode.OPERATION_NOT_ATTEMPTED for error in errors]
        builder.add(transaction, partitions, errors)
        return
    transactional_id = transaction.transactional_id
    producer_id, epoch = transaction.producer_id, transaction.producer_epoch
    if not transactional_id:
        builder.add(transaction, partitions, [ErrorCode.INVALID_REQUEST] * len(partitions))
        return
    shard = ctx.broker.transactions.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        builder.add(transaction, partitions, [shard] * len(partitions))
    elif transaction.verify_only:
        errors = shard.verify(transactional_id, producer_id, epoch, partitions)
        builder.add(transaction, partitions, errors)
    else:

        def done(result: Result) -> None:
            builder.add(transaction, partitions, [result.error] * len(partitions))

        version = TV2 if ctx.api_version >= BATCHES_SINCE else TV0
        shard.add(transactional_id, producer_id, epoch, partitions, version, done)


def _each(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    """Each topic and partition once."""
    keys = {(topic.name, index): None for topic in topics for index in topic.partitions}
    return list(keys)


def _partition_error(auth: AuthHelper, key: TopicPartition) -> ErrorCode:
    """The error of a partition that cannot be added, or NONE.

    Before v4 a producer sends the request. It may not write to internal topics, and adds their
    partitions by AddOffsetsToTxn.
    """
    topic, _ = key
    if auth.ctx.api_version < BATCHES_SINCE and (
        topic in INTERNAL_TOPICS or not auth.topic(AclOperation.WRITE, topic)
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if auth.ctx.image.partition(*key) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return NONE
