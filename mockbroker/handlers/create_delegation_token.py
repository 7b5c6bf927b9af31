"""CreateDelegationToken (38). Tokens are for authenticated users, and no listener authenticates."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


@api(ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3))
def create_delegation_token(
    ctx: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Refuse, as a PLAINTEXT listener does, before it is asked whether tokens are enabled."""
    kind, _, name = ctx.connection.principal.partition(":")
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=request.owner_principal_type or kind,
        principal_name=request.owner_principal_name or name,
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
