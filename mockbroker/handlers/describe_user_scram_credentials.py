"""DescribeUserScramCredentials (50): who has SCRAM credentials, without the secrets (KIP-554)."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.security.sasl.scram_credential import ScramCredential
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def describe_user_scram_credentials(
    ctx: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the users named, or all."""
    credentials = ctx.cluster.scram_credentials
    names = [user.name for user in request.users or ()] or list(credentials)
    return DescribeUserScramCredentialsResponse(
        results=[
            _result(name, names.count(name), credentials.get(name)) for name in dict.fromkeys(names)
        ]
    )


def _result(
    name: str, count: int, mechanisms: Mapping[int, ScramCredential] | None
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            name,
            ErrorCode.DUPLICATE_RESOURCE,
            f"The user {name!r} stands twice in the request.",
        )
    if mechanisms is None:
        return DescribeUserScramCredentialsResult(
            name,
            ErrorCode.RESOURCE_NOT_FOUND,
            f"The user {name!r} has no credentials.",
        )
    return DescribeUserScramCredentialsResult(
        name,
        credential_infos=[
            CredentialInfo(mechanism, credential.iterations)
            for mechanism, credential in mechanisms.items()
        ],
    )
