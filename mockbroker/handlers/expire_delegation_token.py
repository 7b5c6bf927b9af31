"""ExpireDelegationToken (40): let a token end sooner, or at once."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.token_requests import may_ask
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@api(ApiKey.EXPIRE_DELEGATION_TOKEN, versions=(1, 2))
def expire_delegation_token(
    ctx: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Expire the token with this HMAC for its owner or one of its renewers."""
    if not may_ask(ctx):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    try:
        expires_ms = ctx.cluster.delegation_tokens.expire(
            bytes(request.hmac), ctx.connection.principal, request.expiry_time_period_ms
        )
    except ApiError as refusal:
        return ExpireDelegationTokenResponse(error_code=refusal.error)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
