"""AlterClientQuotas (49): set and remove quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.quotas.throttling import Entity
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    ResponseEntityData,
    ResponseEntryData,
)


@api(
    ApiKey.ALTER_CLIENT_QUOTAS,
    versions=(0, 1),
    authorize=clusterwide(AclOperation.ALTER_CONFIGS, has_message=False),
    forwarded=True,
    refusal=Refusal(rows=("entity",), repeats_code=True),
)
def alter_client_quotas(
    ctx: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Alter each entity; the response has one entry for each, with its last result."""
    results: dict[Entity, ResponseEntryData] = {}
    for entry in request.entries:
        entity = entity_of((e.entity_type, e.entity_name) for e in entry.entity)
        result = ResponseEntryData(
            error_message=None,
            entity=[ResponseEntityData(entity_type, name) for entity_type, name in entity],
        )
        try:
            values = _values(entry.ops)
            if entity in results or values is None:
                shown = ", ".join(
                    f"{entity_type}={'null' if name is None else name}"
                    for entity_type, name in entity
                )
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Ignoring duplicate entity ClientQuotaEntity(entries={{{shown}}})",
                )
            ctx.cluster.quotas.alter(entity, values, validate_only=request.validate_only)
        except ApiError as error:
            result.error_code = error.error
            result.error_message = error.message
        results[entity] = result
    if any(result.error_code == ErrorCode.NONE for result in results.values()):
        ctx.cluster.metadata.changed()
    return AlterClientQuotasResponse(entries=list(results.values()))


def _values(ops: list[OpData]) -> dict[str, float | None] | None:
    """Quota -> new value, None for removal; None altogether if a quota is repeated."""
    values = {op.key: None if op.remove else op.value for op in ops}
    return values if len(values) == len(ops) else None
