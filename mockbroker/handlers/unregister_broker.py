"""UnregisterBroker (64): remove the registration of a broker."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


@api(
    ApiKey.UNREGISTER_BROKER,
    versions=(0, 0),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
    refusal=Refusal(repeats_code=True),
)
def unregister_broker(
    ctx: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """A running broker continues without a registration; it registers at its next start."""
    broker = ctx.cluster.brokers.get(request.broker_id)
    if broker is None:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"Broker ID {request.broker_id} is not currently registered",
        )
    ctx.cluster.controller.unregister(broker)
    return UnregisterBrokerResponse()
