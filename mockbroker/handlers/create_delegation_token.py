"""CreateDelegationToken (38): a token for the client, or for another owner (KIP-373)."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.handlers.authorization import AuthHelper, everyone
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.token_requests import allow_token_requests, parts_of
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

OWNER_SINCE = 3
NO_TIME = -1


@api(
    ApiKey.CREATE_DELEGATION_TOKEN,
    versions=(1, 3),
    authorize=everyone(
        "CREATE_TOKENS on the owner, if it is not the client:"
        " `DELEGATION_TOKEN_AUTHORIZATION_FAILED`"
    ),
    forwarded=True,
    refusal=Refusal(
        fixed={
            "CreateDelegationTokenResponse": {
                "principal_type": "User",
                "principal_name": "ANONYMOUS",
                "token_requester_principal_type": "User",
                "token_requester_principal_name": "ANONYMOUS",
                "issue_timestamp_ms": -1,
                "expiry_timestamp_ms": -1,
                "max_timestamp_ms": -1,
            }
        }
    ),
)
def create_delegation_token(
    ctx: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """The client is checked before the config that enables tokens."""
    requester = owner = ctx.connection.principal
    if ctx.api_version >= OWNER_SINCE and request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if not allow_token_requests(ctx):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return _refused(owner, requester, error)
    if owner != requester and not AuthHelper(ctx).allows(
        AclOperation.CREATE_TOKENS, ResourceType.USER, owner
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
    (
        response.token_requester_principal_type,
        response.token_requester_principal_name,
    ) = parts_of(requester)
    return response


def _refused(owner: str, requester: str, error: ErrorCode) -> CreateDelegationTokenResponse:
    response = _named(owner, requester)
    response.error_code = error
    response.issue_timestamp_ms = response.expiry_timestamp_ms = NO_TIME
    response.max_timestamp_ms = NO_TIME
    return response
