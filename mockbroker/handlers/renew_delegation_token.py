"""RenewDelegationToken (39): extend the expiry of a token, up to its maximum lifetime."""

from __future__ import annotations

from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.token_requests import allow_token_requests
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


@api(
    ApiKey.RENEW_DELEGATION_TOKEN,
    versions=(1, 2),
    authorize=everyone("for the token's owner and renewers"),
    forwarded=True,
)
def renew_delegation_token(
    ctx: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Renew the token with this HMAC for its owner or one of its renewers."""
    if not allow_token_requests(ctx):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)
    expires_ms = ctx.cluster.delegation_tokens.renew(
        bytes(request.hmac), ctx.connection.principal, request.renew_period_ms
    )
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
