"""ExpireDelegationToken (40): end a token's life. Without authentication there are none."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@api(ApiKey.EXPIRE_DELEGATION_TOKEN, versions=(1, 2))
def expire_delegation_token(
    ctx: RequestContext,  # noqa: ARG001
    request: ExpireDelegationTokenRequest,  # noqa: ARG001
) -> ExpireDelegationTokenResponse:
    """Refuse, as a PLAINTEXT listener does."""
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
