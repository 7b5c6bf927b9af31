"""DescribeClientQuotas (48): the quotas of the entities that a filter matches (KIP-546)."""

from __future__ import annotations

from mockbroker.core.quotas.client_quotas import FilterComponent
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


@api(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    versions=(0, 1),
    authorize=clusterwide(AclOperation.DESCRIBE_CONFIGS, has_message=False),
    refusal=Refusal(fixed={"DescribeClientQuotasResponse": {"entries": None}}),
)
def describe_client_quotas(
    ctx: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """List the entities that match and their quotas."""
    components = [FilterComponent(c.entity_type, c.match_type, c.match) for c in request.components]
    found = ctx.cluster.quotas.describe(components, strict=request.strict)
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type, name) for entity_type, name in entity],
                values=[ValueData(key, value) for key, value in quotas.items()],
            )
            for entity, quotas in found
        ]
    )
