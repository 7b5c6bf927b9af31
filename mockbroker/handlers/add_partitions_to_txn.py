"""AddPartitionsToTxn (key 24): partitions are going to be written to in a transaction.

Up to v3 a producer adds the partitions of its own transaction. Since v4 the leaders of partitions
ask, about many transactions at once: to verify that partitions are there, or (v5) to add them.
A partition that does not exist keeps the others of its transaction from being added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockbroker.core.topic import INTERNAL_TOPICS
from mockbroker.handlers.base import Parked, RequestContext, api
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
BATCHES_SINCE = 4
TV0, TV2 = 0, 2
NONE = ErrorCode.NONE


@api(ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 5))
def add_partitions_to_txn(
    ctx: RequestContext, request: AddPartitionsToTxnRequest
) -> Parked[AddPartitionsToTxnResponse]:
    """Answer when every transaction of the request is settled."""
    transactions = request.transactions
    if ctx.api_version < BATCHES_SINCE:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    answer = _Answer(ctx, transactions)
    # Kafka answers with the last of the transactions: without any it never does.
    for transaction in transactions:
        _add(ctx, transaction, answer)
    return answer.parked


class _Answer:
    """The response as it grows, transaction by transaction in whatever order they are settled."""

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
            line = topics.get(topic)
            if line is None:
                line = topics[topic] = AddPartitionsToTxnTopicResult(
                    name=topic, results_by_partition=[]
                )
            code = error
            if error is ErrorCode.PRODUCER_FENCED and self._version < FENCED_SINCE:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            line.results_by_partition.append(AddPartitionsToTxnPartitionResult(index, code))
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


def _add(ctx: RequestContext, transaction: AddPartitionsToTxnTransaction, answer: _Answer) -> None:
    partitions = tuple(_each(transaction.topics))
    errors = [_why_not_added(ctx, key) for key in partitions]
    if any(errors):
        # One that cannot be added keeps the others out.
        answer.add(
            transaction,
            partitions,
            [error or ErrorCode.OPERATION_NOT_ATTEMPTED for error in errors],
        )
        return
    transactional_id = transaction.transactional_id
    producer_id, epoch = transaction.producer_id, transaction.producer_epoch
    if not transactional_id:
        answer.add(transaction, partitions, [ErrorCode.INVALID_REQUEST] * len(partitions))
        return
    shard = ctx.broker.transactions.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        answer.add(transaction, partitions, [shard] * len(partitions))
    elif transaction.verify_only:
        verdicts = shard.verify(transactional_id, producer_id, epoch, partitions)
        answer.add(transaction, partitions, verdicts)
    else:

        def done(result: Result) -> None:
            answer.add(transaction, partitions, [result.error] * len(partitions))

        version = TV2 if ctx.api_version >= BATCHES_SINCE else TV0
        shard.add(transactional_id, producer_id, epoch, partitions, version, done)


def _each(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    """Each topic and partition once."""
    keys = {(topic.name, index): None for topic in topics for index in topic.partitions}
    return list(keys)


def _why_not_added(ctx: RequestContext, key: TopicPartition) -> ErrorCode:
    """The error of a partition that cannot be added, NONE if it can.

    Producers may not write to internal topics; their offsets are added by AddOffsetsToTxn.
    """
    if ctx.api_version < BATCHES_SINCE and key[0] in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if ctx.image.partition(*key) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return NONE
