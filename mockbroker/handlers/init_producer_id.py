"""InitProducerId (22): a producer id, for an idempotent or for a transactional producer.

Without a transactional id every request gets a new id at epoch 0, whatever id and epoch it has; its
timeout is ignored (Java sends 2147483647). With one, it gets the next epoch from the coordinator,
which fences the producer with the epoch before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_cluster,
    on_topic,
    on_transactional_id,
    requires,
)
from mockbroker.handlers.base import Parked, api, fenced_error
from mockbroker.handlers.refusals import Refusal
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


@api(
    ApiKey.INIT_PRODUCER_ID,
    versions=(0, 5),
    authorize=by_handler(
        requires(
            on_transactional_id(AclOperation.WRITE),
            about="if there is one",
            otherwise="`TRANSACTIONAL_ID_AUTHORIZATION_FAILED`",
        ),
        requires(
            on_cluster(AclOperation.IDEMPOTENT_WRITE),
            on_topic(AclOperation.WRITE),
            about="any one, for a producer that is idempotent only",
            otherwise="`CLUSTER_AUTHORIZATION_FAILED`",
        ),
    ),
    refusal=Refusal(fixed={"InitProducerIdResponse": {"producer_epoch": -1}}),
)
def init_producer_id(
    ctx: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    """Allocate a producer id, or the next epoch of one."""
    transactional_id = request.transactional_id
    _authorize(AuthHelper(ctx), transactional_id)
    # An id and its epoch come together or not at all (KIP-360).
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if transactional_id is None:
        producer_id = ctx.cluster.runtime.ids.producer_id(ctx.broker.node_id)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    coordinator = ctx.broker.transactions
    if not 0 < request.transaction_timeout_ms <= coordinator.timeout_max_ms:
        raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    shard = coordinator.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        raise ApiError(shard)
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


def _authorize(auth: AuthHelper, transactional_id: str | None) -> None:
    """Raise ApiError unless the client is authorized for such a producer."""
    if transactional_id is not None:
        if not auth.transactional_id(AclOperation.WRITE, transactional_id):
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not (auth.cluster(AclOperation.IDEMPOTENT_WRITE) or auth.any_topic(AclOperation.WRITE)):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _response(result: InitResult, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=fenced_error(result.error, version, FENCED_SINCE),
        producer_id=result.producer_id,
        producer_epoch=result.epoch,
    )
