"""DeleteAcls (31): delete the ACL bindings that match filters."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from mockbroker.handlers.acl_requests import (
    NO_AUTHORIZER,
    filter_codes,
    filter_of,
    has_unknown,
)
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@api(
    ApiKey.DELETE_ACLS,
    versions=(1, 3),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
)
def delete_acls(ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse | Outcome:
    """Delete the matches of each filter; a binding that matches two filters is in both results."""
    if any(has_unknown(*filter_codes(wanted)) for wanted in request.filters):
        return CLOSE_CONNECTION
    if ctx.cluster.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    acls = ctx.cluster.acls
    filters = [filter_of(wanted) for wanted in request.filters]
    found = [_why_invalid(wanted) or acls.find(wanted) for wanted in filters]
    for wanted, matching in zip(filters, found, strict=True):
        if matching and not isinstance(matching, str):
            acls.remove(wanted)
    return DeleteAclsResponse(filter_results=[_result(matching) for matching in found])


def _why_invalid(wanted: AclFilter) -> str:
    """The error message for a filter with an unknown code; "" for a valid filter."""
    if wanted.resource_type is ResourceType.UNKNOWN or wanted.pattern_type is PatternType.UNKNOWN:
        return "Unknown patternFilter."
    if wanted.operation is AclOperation.UNKNOWN or wanted.permission is AclPermissionType.UNKNOWN:
        return "Unknown entryFilter."
    return ""


def _result(matching: list[AclBinding] | str) -> DeleteAclsFilterResult:
    """The result of a filter: the bindings that match, or why it is refused."""
    if isinstance(matching, str):
        return DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, matching)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in matching
        ],
    )
