"""DescribeAcls (29): the ACL bindings that match a filter."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation, PatternType, ResourceType
from mockbroker.handlers.acl_requests import (
    filter_codes,
    filter_of,
    has_unknown,
)
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


@api(
    ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    authorize=clusterwide(AclOperation.DESCRIBE),
)
def describe_acls(
    ctx: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse | Outcome:
    """List the bindings by the patterns of their resources."""
    if has_unknown(*filter_codes(request)):
        return CLOSE_CONNECTION
    if ctx.cluster.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    resources: dict[tuple[ResourceType, str, PatternType], DescribeAclsResource] = {}
    for acl in ctx.cluster.acls.find(filter_of(request)):
        key = (acl.resource_type, acl.resource_name, acl.pattern_type)
        if key not in resources:
            resources[key] = DescribeAclsResource(*key, acls=[])
        resources[key].acls.append(
            AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        )
    return DescribeAclsResponse(resources=list(resources.values()))
