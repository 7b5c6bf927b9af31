"""AlterConfigs (33): replace all overrides of a resource. The incremental API came after it."""

from __future__ import annotations

from collections import Counter

from mockbroker.core.configs.alter import check_changes, replace_overrides
from mockbroker.core.errors import ApiError
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


@api(ApiKey.ALTER_CONFIGS, versions=(0, 2))
def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the overrides of each resource or say why not."""
    counts = Counter((r.resource_type, r.resource_name) for r in request.resources)
    return AlterConfigsResponse(
        responses=[
            _alter(ctx, r, counts[r.resource_type, r.resource_name], request.validate_only)
            for r in request.resources
        ]
    )


def _alter(
    ctx: RequestContext, resource: AlterConfigsResource, count: int, validate_only: bool
) -> AlterConfigsResourceResponse:
    response = AlterConfigsResourceResponse(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    configs = resource.configs
    try:
        if count > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "The resource stands twice in the request.")
        check_changes(
            (config.name for config in configs), (c.name for c in configs if c.value is None)
        )
        replace_overrides(
            ctx.cluster,
            ctx.broker,
            (resource.resource_type, resource.resource_name),
            {config.name: config.value for config in configs if config.value is not None},
            validate_only=validate_only,
        )
    except ApiError as error:
        response.error_code = error.error
        response.error_message = error.message
    return response
