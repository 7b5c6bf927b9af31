"""ListTransactions (66): the transactional ids that this broker coordinates (KIP-664).

An id is listed if it passes all filters. The response names unknown states of a filter.
"""

from __future__ import annotations

from mockbroker.core.patterns import InvalidPatternError, compile_pattern
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
    producer_ids, states = frozenset(request.producer_id_filters), frozenset(request.state_filters)
    shortest_ms = request.duration_filter
    found: list[TransactionListing] = []
    for shard in ctx.broker.transactions.shards():
        if isinstance(shard, ErrorCode):
            return ListTransactionsResponse(error_code=shard)
        found += [
            TransactionListing(line.transactional_id, line.producer_id, line.state.value)
            for line in shard.transactions.values()
            if line.state is not TransactionState.DEAD
            and (not producer_ids or line.producer_id in producer_ids)
            and (not states or line.state.value in states)
            and (shortest_ms < 0 or ctx.now_ms - line.start_ms > shortest_ms)
            and (pattern is None or pattern.fullmatch(line.transactional_id) is not None)
            and auth.transactional_id(AclOperation.DESCRIBE, line.transactional_id)
        ]
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in NAMES],
        transaction_states=found,
    )
