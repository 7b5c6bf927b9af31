"""DescribeDelegationToken (41): the tokens that a client owns, may renew or may describe."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.core.security.delegation_tokens import DelegationToken
from mockbroker.handlers.authorization import AuthHelper, everyone
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.token_requests import allow_token_requests, parts_of
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


@api(
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    versions=(1, 3),
    authorize=everyone(
        "own tokens; other tokens with DESCRIBE on the token or DESCRIBE_TOKENS on its owner, the"
        " rest is left out"
    ),
)
def describe_delegation_token(
    ctx: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Null owners stand for all; an empty list of owners has no tokens."""
    if not allow_token_requests(ctx):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = ctx.cluster.delegation_tokens
    if not tokens.enabled:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    auth, principal = AuthHelper(ctx), ctx.connection.principal
    owners = None
    if request.owners is not None:
        owners = {f"{o.principal_type}:{o.principal_name}" for o in request.owners}

    def visible(token: DelegationToken) -> bool:
        if owners is not None and owners.isdisjoint(token.principals):
            return False
        return (
            token.is_of(principal)
            or auth.allows(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
            or auth.allows(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
        )

    return DescribeDelegationTokenResponse(
        tokens=[_described(token, tokens.hmac(token.token_id)) for token in tokens.find(visible)]
    )


def _described(token: DelegationToken, secret: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        *parts_of(token.owner),
        *parts_of(token.requester),
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=secret,
        renewers=[DescribedDelegationTokenRenewer(*parts_of(each)) for each in token.renewers],
    )
