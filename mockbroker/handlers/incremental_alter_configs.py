"""IncrementalAlterConfigs (44): set, delete, append to, subtract from configs (KIP-339)."""

from __future__ import annotations

from collections import Counter

from mockbroker.core.configs.alter import Change, alter_incrementally
from mockbroker.core.errors import ApiError
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@api(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configs of each resource, whole or not at all, or say why not."""
    counts = Counter((r.resource_type, r.resource_name) for r in request.resources)
    return IncrementalAlterConfigsResponse(
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
    try:
        if count > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "The resource stands twice in the request.")
        alter_incrementally(
            ctx.cluster,
            ctx.broker,
            (resource.resource_type, resource.resource_name),
            [Change(c.name, c.config_operation, c.value) for c in resource.configs],
            validate_only=validate_only,
        )
    except ApiError as error:
        response.error_code = error.error
        response.error_message = error.message
    return response
