"""InitProducerId (key 22): a producer id, for an idempotent or for a transactional producer.

Without a transactional id every request gets a fresh id at epoch 0, whatever id and epoch it came
with; its timeout is not looked at (Java sends 2147483647). With one, the coordinator gives out the
next epoch, and whoever held the one before is fenced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mockbroker.handlers.base import Parked, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.txn.events import InitResult, Result
    from mockbroker.handlers.base import RequestContext

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
FENCED_SINCE = 4
_INVALID_REQUEST = int(ErrorCode.INVALID_REQUEST)

Reply = InitProducerIdResponse | Parked[InitProducerIdResponse]


@api(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
def init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> Reply:
    """Hand out a producer id that was never handed out before, or its next epoch."""
    # An id and its epoch come together or not at all (KIP-360).
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(_INVALID_REQUEST)
    if request.transactional_id is None:
        producer_id = ctx.cluster.ids.producer_id(ctx.broker.node_id)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    if not request.transactional_id:
        return _refused(_INVALID_REQUEST)
    return _initialised(ctx, request, request.transactional_id)


def _initialised(
    ctx: RequestContext, request: InitProducerIdRequest, transactional_id: str
) -> Reply:
    coordinator = ctx.broker.transactions
    if not 0 < request.transaction_timeout_ms <= coordinator.timeout_max_ms:
        return _refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    shard = coordinator.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        return _refused(shard)
    parked: Parked[InitProducerIdResponse] = Parked()

    def done(result: Result) -> None:
        parked.complete(_response(cast("InitResult", result), ctx.api_version))

    shard.init(
        transactional_id,
        request.transaction_timeout_ms,
        request.producer_id,
        request.producer_epoch,
        done,
    )
    return parked


def _response(result: InitResult, version: int) -> InitProducerIdResponse:
    error = result.error
    if error is ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(
        error_code=error, producer_id=result.producer_id, producer_epoch=result.epoch
    )


def _refused(error: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
