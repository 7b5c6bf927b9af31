"""DescribeDelegationToken (41). No listener authenticates, so there are no tokens."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


@api(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=(1, 3))
def describe_delegation_token(
    ctx: RequestContext,  # noqa: ARG001
    request: DescribeDelegationTokenRequest,  # noqa: ARG001
) -> DescribeDelegationTokenResponse:
    """Refuse, as a PLAINTEXT listener does."""
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )
