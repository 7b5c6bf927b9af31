"""DescribeUserScramCredentials (50): users with SCRAM credentials, without secrets (KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import ErrorDetails, Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from mockbroker.core.security.sasl.scram_credential import ScramCredential


def _name_none(
    response: DescribeUserScramCredentialsResponse,
    request: DescribeUserScramCredentialsRequest,  # noqa: ARG001
    details: ErrorDetails,  # noqa: ARG001
) -> None:
    """Kafka's error response has a result for each user, without the name."""
    for result in response.results:
        result.user = ""


@api(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    authorize=clusterwide(AclOperation.DESCRIBE, has_message=False),
    refusal=Refusal(rows=("results",), finish=_name_none),
)
def describe_user_scram_credentials(
    ctx: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the users named, or all."""
    credentials = ctx.cluster.scram_credentials
    names = Counter([user.name for user in request.users or ()] or list(credentials))
    return DescribeUserScramCredentialsResponse(
        results=[_result(name, count, credentials.get(name)) for name, count in names.items()]
    )


def _result(
    name: str, count: int, mechanisms: Mapping[int, ScramCredential] | None
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            name,
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request:"
            f" {name}",
        )
    if mechanisms is None:
        return DescribeUserScramCredentialsResult(
            name,
            ErrorCode.RESOURCE_NOT_FOUND,
            f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(
        name,
        credential_infos=[
            CredentialInfo(mechanism, credential.iterations)
            for mechanism, credential in mechanisms.items()
        ],
    )
