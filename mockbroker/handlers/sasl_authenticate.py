"""SaslAuthenticate (36) on a listener that does not authenticate: out of place."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


@api(ApiKey.SASL_AUTHENTICATE, versions=(0, 2))
def sasl_authenticate(
    ctx: RequestContext,  # noqa: ARG001
    request: SaslAuthenticateRequest,  # noqa: ARG001
) -> SaslAuthenticateResponse:
    """Answer ILLEGAL_SASL_STATE, as a PLAINTEXT listener does."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="There is nothing to authenticate on this listener.",
    )
