"""IncrementalAlterConfigs (44): set, delete, append to, subtract from configs (KIP-339)."""

from __future__ import annotations

from mockbroker.core.configs.alter import AlterConfigOp, OpType, alter_incrementally
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import by_handler
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.config_authorization import alter_each, config_rules
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    versions=(0, 1),
    authorize=by_handler(*config_rules(AclOperation.ALTER_CONFIGS)),
    forwarded=True,
)
def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse | Parked[IncrementalAlterConfigsResponse]:
    """Apply all changes of each resource, or none and answer its error."""

    def alter(resource: AlterConfigsResource) -> None:
        alter_incrementally(
            ctx.cluster,
            ctx.broker,
            (resource.resource_type, resource.resource_name),
            [AlterConfigOp(c.name, c.config_operation, c.value) for c in resource.configs],
            validate_only=request.validate_only,
        )

    return alter_each(
        ctx,
        request,
        alter,
        AlterConfigsResourceResponse,
        lambda rows: IncrementalAlterConfigsResponse(responses=rows),
        needs_value=lambda change: change.config_operation != OpType.DELETE,
    )
