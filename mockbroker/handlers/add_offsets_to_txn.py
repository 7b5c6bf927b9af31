"""AddOffsetsToTxn (key 25): the offsets of a group are going to be committed in a transaction.

What is added is the partition of `__consumer_offsets` that holds the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.txn.events import Result

FENCED_SINCE = 2
TV0 = 0  # producers of TV2 have the group coordinator add the partition


@api(ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4))
def add_offsets_to_txn(
    ctx: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Parked[AddOffsetsToTxnResponse]:
    """Add the partition that holds the group's offsets."""
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    shard = ctx.broker.transactions.shard_of(request.transactional_id)
    if isinstance(shard, ErrorCode):
        return AddOffsetsToTxnResponse(error_code=shard)
    parked: Parked[AddOffsetsToTxnResponse] = Parked()

    def done(result: Result) -> None:
        error = result.error
        if error is ErrorCode.PRODUCER_FENCED and ctx.api_version < FENCED_SINCE:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        parked.complete(AddOffsetsToTxnResponse(error_code=error))

    index = ctx.cluster.find_coordinator_partition(request.group_id)
    shard.add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        ((GROUP_METADATA_TOPIC, index),),
        TV0,
        done,
    )
    return parked
