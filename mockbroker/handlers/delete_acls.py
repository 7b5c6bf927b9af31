"""DeleteAcls (31): delete the ACL bindings that match filters."""

from __future__ import annotations

from collections.abc import Generator

from mockbroker.core.errors import ApiError, LimitError
from mockbroker.core.limits import RESPONSE_ELEMENTS_MAX
from mockbroker.core.replication.topic_plans import MAX_RECORDS_PER_USER_OP
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
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, Parked, RequestContext, api
from mockbroker.handlers.slices import in_slices
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

# How many bindings are compared with filters before other requests are handled.
COMPARED_PER_SLICE = 20_000


@api(
    ApiKey.DELETE_ACLS,
    versions=(1, 3),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
)
def delete_acls(
    ctx: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse | Parked[DeleteAclsResponse] | Outcome:
    """Delete the matches of each filter; a binding that matches two filters is in both results."""
    if any(has_unknown(*filter_codes(wanted)) for wanted in request.filters):
        return CLOSE_CONNECTION
    if ctx.cluster.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return in_slices(ctx, request, _deleted(ctx, request), changes=True)


def _deleted(
    ctx: RequestContext, request: DeleteAclsRequest
) -> Generator[None, None, DeleteAclsResponse]:
    """Find the matches of all filters, then delete them together.

    The response has each match of each filter, and is made in one piece.
    """
    acls = ctx.cluster.acls
    matches_max = ctx.cluster.config_int(RESPONSE_ELEMENTS_MAX)
    found: list[list[AclBinding] | str] = []
    removed: dict[AclBinding, None] = {}
    compared = matches = 0
    for each in request.filters:
        wanted = filter_of(each)
        invalid = _why_invalid(wanted)
        matching = [] if invalid else acls.find(wanted)
        found.append(invalid or matching)
        removed.update(dict.fromkeys(matching))
        compared += len(acls)
        matches += len(matching)
        if len(removed) > MAX_RECORDS_PER_USER_OP:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Cannot remove more than {MAX_RECORDS_PER_USER_OP} acls in a single delete "
                "operation.",
            )
        if matches > matches_max:
            raise LimitError(
                ErrorCode.INVALID_REQUEST,
                f"The filters match more than {matches_max:,} ACLs ({RESPONSE_ELEMENTS_MAX}).",
                RESPONSE_ELEMENTS_MAX,
            )
        if compared > COMPARED_PER_SLICE:
            compared = 0
            yield
    acls.remove(removed)
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
