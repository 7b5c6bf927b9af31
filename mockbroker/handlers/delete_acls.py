"""DeleteAcls (31). There is no authorizer, as on a broker that has none configured."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@api(ApiKey.DELETE_ACLS, versions=(1, 3))
def delete_acls(ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:  # noqa: ARG001
    """Refuse each filter."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, "The brokers have no authorizer.")
            for _ in request.filters
        ]
    )
