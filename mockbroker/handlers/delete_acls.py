"""DeleteAcls (31): take back what filters match."""

from __future__ import annotations

from mockbroker.core.security.acls import (
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from mockbroker.handlers.acl_requests import (
    NO_AUTHORIZER,
    filter_codes,
    filter_of,
    has_unknown,
)
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@api(ApiKey.DELETE_ACLS, versions=(1, 3))
def delete_acls(ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse | Outcome:
    """Delete what each filter matches; what two of them match is told twice."""
    if any(has_unknown(*filter_codes(wanted)) for wanted in request.filters):
        return CLOSE_CONNECTION
    if ctx.cluster.authorizer is None:
        result = DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=[result] * len(request.filters))
    acls = ctx.cluster.acls
    filters = [filter_of(wanted) for wanted in request.filters]
    found = [None if _is_senseless(wanted) else acls.find(wanted) for wanted in filters]
    for wanted, matching in zip(filters, found, strict=True):
        if matching:
            acls.remove(wanted)
    return DeleteAclsResponse(filter_results=[_result(matching) for matching in found])


def _is_senseless(wanted: AclFilter) -> bool:
    """Whether a filter has a code that nobody knows."""
    return (
        wanted.resource_type is ResourceType.UNKNOWN
        or wanted.pattern_type is PatternType.UNKNOWN
        or wanted.operation is Operation.UNKNOWN
        or wanted.permission is Permission.UNKNOWN
    )


def _result(matching: list[AclBinding] | None) -> DeleteAclsFilterResult:
    if matching is None:
        message = "The filter has a code that is not known."
        return DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, message)
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
