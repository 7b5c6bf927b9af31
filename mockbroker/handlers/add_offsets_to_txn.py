"""AddOffsetsToTxn (25): add a group's partition of `__consumer_offsets` to a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import named, on_group, on_transactional_id, required
from mockbroker.handlers.base import Parked, RequestContext, api, fenced_error
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.txn.events import Result

FENCED_SINCE = 2
TV0 = 0  # with TV2 the group coordinator adds the partition


@api(
    ApiKey.ADD_OFFSETS_TO_TXN,
    versions=(0, 4),
    authorize=required(
        named(on_transactional_id(AclOperation.WRITE), "transactional_id"),
        named(on_group(AclOperation.READ), "group_id"),
    ),
)
def add_offsets_to_txn(
    ctx: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Parked[AddOffsetsToTxnResponse]:
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    shard = ctx.broker.transactions.shard_of(request.transactional_id)
    if isinstance(shard, ErrorCode):
        return AddOffsetsToTxnResponse(error_code=shard)
    parked: Parked[AddOffsetsToTxnResponse] = Parked()

    def done(result: Result) -> None:
        error = fenced_error(result.error, ctx.api_version, FENCED_SINCE)
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
