"""EndTxn (26): commit or abort a transaction.

The response is sent once the decision is stored; the markers follow. Since v5 it has the epoch of
the next transaction, or a new producer id once the epochs are used up (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import named, on_transactional_id, required
from mockbroker.handlers.base import Parked, RequestContext, api, fenced_error
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from mockbroker.core.txn.events import EndResult, Result

FENCED_SINCE = 2
EPOCH_BUMPED_SINCE = 5
TV0, TV2 = 0, 2


@api(
    ApiKey.END_TXN,
    versions=(0, 5),
    authorize=required(named(on_transactional_id(AclOperation.WRITE), "transactional_id")),
)
def end_txn(ctx: RequestContext, request: EndTxnRequest) -> EndTxnResponse | Parked[EndTxnResponse]:
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    shard = ctx.broker.transactions.shard_of(request.transactional_id)
    if isinstance(shard, ErrorCode):
        return EndTxnResponse(error_code=shard)
    parked: Parked[EndTxnResponse] = Parked()

    def done(result: Result) -> None:
        parked.complete(_response(cast("EndResult", result), ctx.api_version))

    shard.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        TV2 if ctx.api_version >= EPOCH_BUMPED_SINCE else TV0,
        done,
        committed=request.committed,
    )
    return parked


def _response(result: EndResult, version: int) -> EndTxnResponse:
    error = fenced_error(result.error, version, FENCED_SINCE)
    if version < EPOCH_BUMPED_SINCE:
        return EndTxnResponse(error_code=error)
    return EndTxnResponse(
        error_code=error, producer_id=result.producer_id, producer_epoch=result.epoch
    )
