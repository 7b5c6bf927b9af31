"""CreateDelegationToken (38): a token for oneself or, with the right to, for another (KIP-373)."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import Operation, ResourceType
from mockbroker.handlers.authorization.access import Access
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.token_requests import may_ask, parts_of
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

OWNER_SINCE = 3
NO_TIME = -1


@api(ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3))
def create_delegation_token(
    ctx: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Who may ask at all is looked at before whether there are tokens here."""
    requester = owner = ctx.connection.principal
    if ctx.api_version >= OWNER_SINCE and request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if not may_ask(ctx):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return _refused(owner, requester, error)
    if owner != requester and not Access(ctx).may(
        Operation.CREATE_TOKENS, ResourceType.USER, owner
    ):
        error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        return _refused(owner, requester, error)
    tokens = ctx.cluster.delegation_tokens
    renewers = [f"{r.principal_type}:{r.principal_name}" for r in request.renewers]
    try:
        token = tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    except ApiError as refusal:
        return _refused(owner, requester, refusal.error)
    response = _named(owner, requester)
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token.token_id
    response.hmac = tokens.hmac(token.token_id)
    return response


def _named(owner: str, requester: str) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse()
    response.principal_type, response.principal_name = parts_of(owner)
    asking = parts_of(requester)
    response.token_requester_principal_type, response.token_requester_principal_name = asking
    return response


def _refused(owner: str, requester: str, error: ErrorCode) -> CreateDelegationTokenResponse:
    response = _named(owner, requester)
    response.error_code = error
    response.issue_timestamp_ms = response.expiry_timestamp_ms = NO_TIME
    response.max_timestamp_ms = NO_TIME
    return response
