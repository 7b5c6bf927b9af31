"""SaslHandshake (17): choose a SASL mechanism (KIP-43)."""

from __future__ import annotations

from mockbroker.handlers.authentication import delayed_failure
from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@api(
    ApiKey.SASL_HANDSHAKE,
    versions=(0, 1),
    authorize=everyone("precedes authentication"),
)
def sasl_handshake(
    ctx: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse | Parked[SaslHandshakeResponse] | Outcome:
    """Set the mechanism. ILLEGAL_SASL_STATE without SASL, and after the authentication."""
    sasl = ctx.connection.sasl
    if sasl is None or not sasl.expects_handshake:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    answer = sasl.handshake(request.mechanism, ctx.api_version)
    response = SaslHandshakeResponse(error_code=answer.error, mechanisms=sasl.mechanisms)
    if not sasl.failed:
        return response
    return (
        CLOSE_CONNECTION
        if sasl.is_reauthenticating
        else delayed_failure(ctx.cluster, ctx.now_ms, response)
    )
