"""RenewDelegationToken (39): let a token live on, up to its maximum."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.token_requests import may_ask
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


@api(ApiKey.RENEW_DELEGATION_TOKEN, versions=(1, 2))
def renew_delegation_token(
    ctx: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Renew the token with this HMAC for its owner or one of its renewers."""
    if not may_ask(ctx):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    try:
        expires_ms = ctx.cluster.delegation_tokens.renew(
            bytes(request.hmac), ctx.connection.principal, request.renew_period_ms
        )
    except ApiError as refusal:
        return RenewDelegationTokenResponse(error_code=refusal.error)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
