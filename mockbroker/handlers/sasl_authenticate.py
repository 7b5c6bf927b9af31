"""SaslAuthenticate (36): a token of the mechanism, and the server's token (KIP-152)."""

from __future__ import annotations

from mockbroker.handlers.authentication import delayed_failure
from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


@api(
    ApiKey.SASL_AUTHENTICATE,
    versions=(0, 2),
    authorize=everyone("is the authentication"),
)
def sasl_authenticate(
    ctx: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Parked[SaslAuthenticateResponse]:
    """Process the token. ILLEGAL_SASL_STATE without SASL, and after the authentication."""
    sasl = ctx.connection.sasl
    if sasl is None or not sasl.expects_token:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    answer = sasl.token(bytes(request.auth_bytes), ctx.now_ms)
    response = SaslAuthenticateResponse(
        error_code=answer.error,
        # A message may quote a token, whose JSON may name half of a character.
        error_message=answer.message and answer.message.encode("utf-8", "replace").decode(),
        auth_bytes=answer.token,
        session_lifetime_ms=answer.session_lifetime_ms,
    )
    if sasl.failed:
        return delayed_failure(ctx.cluster, ctx.now_ms, response)
    ctx.connection.principal = sasl.principal
    return response
