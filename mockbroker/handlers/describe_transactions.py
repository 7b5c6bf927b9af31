"""DescribeTransactions (65): transactional ids and their transactions (KIP-664)."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation
from mockbroker.core.txn.states import TransactionState
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_topic,
    on_transactional_id,
    requires,
)
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.rows import Rows
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from mockbroker_protocol.messages.describe_transactions import (
    TransactionState as TransactionDescription,
)


@api(
    ApiKey.DESCRIBE_TRANSACTIONS,
    versions=(0, 0),
    authorize=by_handler(
        requires(on_transactional_id(AclOperation.DESCRIBE)),
        requires(
            on_topic(AclOperation.DESCRIBE), about="each that takes part", otherwise="left out"
        ),
    ),
    rows=Rows("transactional_ids", "transaction_states"),
)
def describe_transactions(
    ctx: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe each id, with the partitions of its transaction that have no marker yet."""
    auth = AuthHelper(ctx)
    return DescribeTransactionsResponse(
        transaction_states=[_describe(ctx, auth, each) for each in request.transactional_ids]
    )


def _describe(
    ctx: RequestContext, auth: AuthHelper, transactional_id: str
) -> TransactionDescription:
    if not auth.transactional_id(AclOperation.DESCRIBE, transactional_id):
        return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return _refused(transactional_id, ErrorCode.INVALID_REQUEST)
    shard = ctx.broker.transactions.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        return _refused(transactional_id, shard)
    transaction = shard.transactions.get(transactional_id)
    if transaction is None or transaction.state is TransactionState.DEAD:
        return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics: dict[str, TopicData] = {}
    for topic, partition in transaction.partitions:
        if auth.topic(AclOperation.DESCRIBE, topic):
            topics.setdefault(topic, TopicData(topic, [])).partitions.append(partition)
    return TransactionDescription(
        transactional_id=transactional_id,
        transaction_state=transaction.state.value,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=list(topics.values()),
    )


def _refused(transactional_id: str, error: ErrorCode) -> TransactionDescription:
    return TransactionDescription(error_code=error, transactional_id=transactional_id)
