"""SaslHandshake (17): agree on a SASL mechanism (KIP-43), or hear that this is no place for it."""

from __future__ import annotations

from mockbroker.handlers.authentication import told_late
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@api(ApiKey.SASL_HANDSHAKE, versions=(0, 1))
def sasl_handshake(
    ctx: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse | Parked[SaslHandshakeResponse] | Outcome:
    """Choose the mechanism. ILLEGAL_SASL_STATE where nobody has to authenticate, or has done so."""
    sasl = ctx.connection.sasl
    if sasl is None or not sasl.takes_handshake:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    answer = sasl.handshake(request.mechanism, ctx.api_version)
    response = SaslHandshakeResponse(error_code=answer.error, mechanisms=sasl.mechanisms)
    if not sasl.failed:
        return response
    return CLOSE_CONNECTION if sasl.renews else told_late(ctx.cluster, ctx.now_ms, response)
