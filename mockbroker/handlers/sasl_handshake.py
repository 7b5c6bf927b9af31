"""SaslHandshake (17) on a listener that does not authenticate: out of place."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@api(ApiKey.SASL_HANDSHAKE, versions=(0, 1))
def sasl_handshake(
    ctx: RequestContext,  # noqa: ARG001
    request: SaslHandshakeRequest,  # noqa: ARG001
) -> SaslHandshakeResponse:
    """Answer ILLEGAL_SASL_STATE, as a PLAINTEXT listener does."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
