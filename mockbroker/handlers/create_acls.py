"""CreateAcls (30): allow or deny something. What is there already stays as it is."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from mockbroker.handlers.acl_requests import NO_AUTHORIZER, has_unknown
from mockbroker.handlers.base import CLOSE_CONNECTION, Outcome, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


@api(ApiKey.CREATE_ACLS, versions=(1, 3))
def create_acls(ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse | Outcome:
    """Create each binding, or say why not; they hold from the next request on."""
    if any(
        has_unknown(c.resource_type, c.resource_pattern_type, c.operation, c.permission_type)
        for c in request.creations
    ):
        return CLOSE_CONNECTION
    if ctx.cluster.authorizer is None:
        result = AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return CreateAclsResponse(results=[result] * len(request.creations))
    if any(_is_for_filters(creation) for creation in request.creations):
        result = AclCreationResult(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return CreateAclsResponse(results=[result] * len(request.creations))
    bindings: list[AclBinding] = []
    results: list[AclCreationResult] = []
    for creation in request.creations:
        try:
            bindings.append(_binding(creation))
            results.append(AclCreationResult())
        except ApiError as error:
            results.append(AclCreationResult(error.error, error.message))
    ctx.cluster.acls.add(*bindings)
    return CreateAclsResponse(results=results)


def _is_for_filters(creation: AclCreation) -> bool:
    """Whether a creation says what only a filter may say; Kafka stumbles over the whole request."""
    return (
        creation.resource_type == ResourceType.ANY
        or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.operation == Operation.ANY
        or creation.permission_type == Permission.ANY
    )


def _binding(creation: AclCreation) -> AclBinding:
    """The binding to create. Raises ApiError INVALID_REQUEST where it makes no sense."""
    acl = AclBinding(
        ResourceType(creation.resource_type),
        creation.resource_name,
        PatternType(creation.resource_pattern_type),
        creation.principal,
        creation.host,
        Operation(creation.operation),
        Permission(creation.permission_type),
    )
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise _invalid(f"The cluster is called {CLUSTER_NAME}, not {acl.resource_name!r}.")
    if not acl.resource_name:
        raise _invalid("A resource needs a name.")
    if acl.resource_type is ResourceType.UNKNOWN:
        raise _invalid(f"There is no resource of type {creation.resource_type}.")
    if acl.pattern_type is PatternType.UNKNOWN:
        raise _invalid(f"{creation.resource_pattern_type} is no type of a resource's pattern.")
    if ":" not in acl.principal:
        raise _invalid(f"{acl.principal!r} is no principal; those are of the form User:name.")
    if acl.operation is Operation.UNKNOWN:
        raise _invalid(f"{creation.operation} is no operation to allow or deny.")
    if acl.permission is Permission.UNKNOWN:
        raise _invalid(f"{creation.permission_type} neither allows nor denies.")
    return acl


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)
