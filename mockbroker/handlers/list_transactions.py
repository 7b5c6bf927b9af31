"""ListTransactions (66): the transactional ids that this broker coordinates (KIP-664).

An id is listed if it passes all filters. The response names unknown states of a filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.patterns import InvalidPatternError, Pattern, compile_pattern
from mockbroker.core.security.acls import AclOperation
from mockbroker.core.txn.states import TransactionState
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_transactional_id, requires
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from mockbroker_protocol.messages.list_transactions import (
    TransactionState as TransactionListing,
)

if TYPE_CHECKING:
    from mockbroker.core.txn.machine import TransactionMetadata

NAMES = {state.value for state in TransactionState}


@api(
    ApiKey.LIST_TRANSACTIONS,
    versions=(0, 2),
    authorize=by_handler(
        requires(on_transactional_id(AclOperation.DESCRIBE), otherwise="left out")
    ),
)
def list_transactions(
    ctx: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List the transactional ids that match the filters."""
    pattern = None
    if request.transactional_id_pattern:
        try:
            pattern = compile_pattern(request.transactional_id_pattern)
        except InvalidPatternError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    auth = AuthHelper(ctx)
    found: list[TransactionListing] = []
    for shard in ctx.broker.transactions.shards():
        if isinstance(shard, ErrorCode):
            return ListTransactionsResponse(error_code=shard)
        found += [
            TransactionListing(line.transactional_id, line.producer_id, line.state.value)
            for line in shard.transactions.values()
            if _passes(line, request, pattern, ctx.now_ms)
            and auth.transactional_id(AclOperation.DESCRIBE, line.transactional_id)
        ]
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in NAMES],
        transaction_states=found,
    )


def _passes(
    transaction: TransactionMetadata,
    request: ListTransactionsRequest,
    pattern: Pattern | None,
    now_ms: int,
) -> bool:
    if transaction.state is TransactionState.DEAD:
        return False
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and transaction.state.value not in request.state_filters:
        return False
    if request.duration_filter >= 0 and now_ms - transaction.start_ms <= request.duration_filter:
        return False
    return pattern is None or pattern.fullmatch(transaction.transactional_id) is not None
