"""ListConfigResources (74): resources with configs (KIP-1142; KIP-1000 for version 0)."""

from __future__ import annotations

from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


@api(
    ApiKey.LIST_CONFIG_RESOURCES,
    versions=(0, 1),
    authorize=clusterwide(AclOperation.DESCRIBE_CONFIGS, has_message=False),
)
def list_config_resources(
    ctx: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List the resources of the types in the request, or of all types."""
    if ctx.api_version == 0:
        wanted = [int(ConfigResourceType.CLIENT_METRICS)]
    else:
        wanted = request.resource_types or [int(kind) for kind in ConfigResourceType]
    if any(kind not in ConfigResourceType._value2member_map_ for kind in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(wanted)
            for name in _names(ctx, ConfigResourceType(kind))
        ]
    )


def _names(ctx: RequestContext, kind: ConfigResourceType) -> list[str]:
    match kind:
        case ConfigResourceType.TOPIC:
            return list(ctx.image.topics)
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(node_id) for node_id in ctx.image.brokers]
        case ConfigResourceType.GROUP:
            return list(ctx.cluster.configs.groups)
        case ConfigResourceType.CLIENT_METRICS:
            return list(ctx.cluster.configs.client_metrics)
