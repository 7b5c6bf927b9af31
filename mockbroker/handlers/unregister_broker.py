"""UnregisterBroker (64): take away the registration of a broker."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


@api(ApiKey.UNREGISTER_BROKER, versions=(0, 0))
def unregister_broker(
    ctx: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """Forget the broker. A live one goes on running unknown; when it is started it registers."""
    broker = ctx.cluster.brokers.get(request.broker_id)
    if broker is None:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"Broker {request.broker_id} is not registered.",
        )
    ctx.cluster.controller.unregister(broker)
    return UnregisterBrokerResponse()
