"""DescribeAcls (29). There is no authorizer, as on a broker that has none configured."""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@api(ApiKey.DESCRIBE_ACLS, versions=(1, 3))
def describe_acls(ctx: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:  # noqa: ARG001
    """Refuse: without an authorizer there are no ACLs to describe."""
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="The brokers have no authorizer.",
    )
