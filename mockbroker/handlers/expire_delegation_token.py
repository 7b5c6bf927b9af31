"""ExpireDelegationToken (40): shorten the expiry of a token, or expire it at once."""

from __future__ import annotations

from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.token_requests import allow_token_requests
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@api(
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    versions=(1, 2),
    authorize=everyone("for the token's owner and renewers"),
    forwarded=True,
)
def expire_delegation_token(
    ctx: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Expire the token with this HMAC for its owner or one of its renewers."""
    if not allow_token_requests(ctx):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    expires_ms = ctx.cluster.delegation_tokens.expire(
        bytes(request.hmac), ctx.connection.principal, request.expiry_time_period_ms
    )
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
