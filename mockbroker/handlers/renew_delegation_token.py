"""RenewDelegationToken (39): keep a token alive. Without authentication there are none."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


@api(ApiKey.RENEW_DELEGATION_TOKEN, versions=(1, 2))
def renew_delegation_token(
    ctx: RequestContext,  # noqa: ARG001
    request: RenewDelegationTokenRequest,  # noqa: ARG001
) -> RenewDelegationTokenResponse:
    """Refuse, as a PLAINTEXT listener does."""
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
