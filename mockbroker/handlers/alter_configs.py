"""AlterConfigs (33): replace all overrides of a resource."""

from __future__ import annotations

from mockbroker.core.configs.alter import replace_overrides
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import by_handler
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.config_authorization import alter_each, config_rules
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


@api(
    ApiKey.ALTER_CONFIGS,
    versions=(0, 2),
    authorize=by_handler(*config_rules(AclOperation.ALTER_CONFIGS)),
    forwarded=True,
)
def alter_configs(
    ctx: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse | Parked[AlterConfigsResponse]:
    """Replace the overrides of each resource, or answer its error."""

    def alter(resource: AlterConfigsResource) -> None:
        replace_overrides(
            ctx.cluster,
            ctx.broker,
            (resource.resource_type, resource.resource_name),
            {config.name: config.value for config in resource.configs if config.value is not None},
            validate_only=request.validate_only,
        )

    return alter_each(
        ctx,
        request,
        alter,
        AlterConfigsResourceResponse,
        lambda rows: AlterConfigsResponse(responses=rows),
        needs_value=lambda _: True,
    )
