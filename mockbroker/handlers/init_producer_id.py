"""InitProducerId (key 22): a producer id for an idempotent producer.

Without a transactional id every request gets a fresh id at epoch 0, whatever id and epoch it came
with; its timeout is not looked at (Java sends 2147483647). Nobody coordinates transactions here, so
a request with a transactional id is told that no coordinator is available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.handlers.base import api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
_INVALID_REQUEST = int(ErrorCode.INVALID_REQUEST)
_COORDINATOR_NOT_AVAILABLE = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)


@api(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
def init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Hand out a producer id that was never handed out before."""
    # An id and its epoch come together or not at all (KIP-360).
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(_INVALID_REQUEST)
    if request.transactional_id is None:
        producer_id = ctx.cluster.ids.producer_id(ctx.broker.node_id)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    if not request.transactional_id:
        return _refused(_INVALID_REQUEST)
    return _refused(_COORDINATOR_NOT_AVAILABLE)


def _refused(error: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
