"""CreateAcls (30): create ACL bindings; existing ones stay as they are."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.topic_plans import EXCESSIVE_BATCH, MAX_RECORDS_PER_USER_OP
from mockbroker.core.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from mockbroker.handlers.acl_requests import NO_AUTHORIZER, has_unknown
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


@api(
    ApiKey.CREATE_ACLS,
    versions=(1, 3),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
)
def create_acls(ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse | Outcome:
    """Create each binding, or answer its error. They are in force from the next request on."""
    if any(
        has_unknown(c.resource_type, c.resource_pattern_type, c.operation, c.permission_type)
        for c in request.creations
    ):
        return CLOSE_CONNECTION
    if ctx.cluster.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    if any(_is_for_filters(creation) for creation in request.creations):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    bindings: list[AclBinding] = []
    results: list[AclCreationResult] = []
    for creation in request.creations:
        try:
            bindings.append(_binding(creation))
            results.append(AclCreationResult())
        except ApiError as error:
            results.append(AclCreationResult(error.error, error.message))
    acls = ctx.cluster.acls
    new = {acl: None for acl in bindings if acl not in acls}
    if len(new) > MAX_RECORDS_PER_USER_OP:
        raise ApiError(ErrorCode.POLICY_VIOLATION, EXCESSIVE_BATCH)
    acls.add(*new)
    return CreateAclsResponse(results=results)


def _is_for_filters(creation: AclCreation) -> bool:
    """Whether a creation has a code for filters; in Kafka the whole request then fails."""
    return (
        creation.resource_type == ResourceType.ANY
        or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.operation == AclOperation.ANY
        or creation.permission_type == AclPermissionType.ANY
    )


def _binding(creation: AclCreation) -> AclBinding:
    """The binding to create. Raises ApiError INVALID_REQUEST if it is not valid."""
    acl = AclBinding(
        ResourceType(creation.resource_type),
        creation.resource_name,
        PatternType(creation.resource_pattern_type),
        creation.principal,
        creation.host,
        AclOperation(creation.operation),
        AclPermissionType(creation.permission_type),
    )
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise _invalid("Invalid empty resource name")
    if acl.resource_type is ResourceType.UNKNOWN:
        raise _invalid("Invalid resourceType UNKNOWN")
    if acl.pattern_type is PatternType.UNKNOWN:
        raise _invalid("Invalid patternType UNKNOWN")
    if acl.operation is AclOperation.UNKNOWN:
        raise _invalid("Invalid operation UNKNOWN")
    if acl.permission is AclPermissionType.UNKNOWN:
        raise _invalid("Invalid permissionType UNKNOWN")
    if ":" not in acl.principal:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    return acl


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)
