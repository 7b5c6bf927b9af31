"""CreateAcls (30). There is no authorizer, as on a broker that has none configured."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


@api(ApiKey.CREATE_ACLS, versions=(1, 3))
def create_acls(ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:  # noqa: ARG001
    """Refuse each creation."""
    return CreateAclsResponse(
        results=[
            AclCreationResult(ErrorCode.SECURITY_DISABLED, "The brokers have no authorizer.")
            for _ in request.creations
        ]
    )
