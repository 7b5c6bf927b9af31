"""Coordinators of groups and transactional ids, and their partitions."""

from __future__ import annotations

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.core.validation import ValidationError
from mockbroker.core.views.coordinators import (
    CoordinatorView,
    group_coordinator_view,
    transaction_coordinator_view,
)

endpoints = ApiEndpoints()


class CoordinatorQuery(msgspec.Struct):
    """Exactly one of the two."""

    group: str | None = None
    transactional_id: str | None = None


@endpoints.get(
    "/v1/coordinator",
    "Coordinator and partition of a group or transactional id",
    query=CoordinatorQuery,
)
async def coordinator(backend: AdminBackend, call: EndpointCall) -> CoordinatorView:
    group, transactional_id = call.query.group, call.query.transactional_id
    if group is not None and transactional_id is None:
        return await backend.cluster(lambda cluster: group_coordinator_view(cluster, group))
    if group is None and transactional_id is not None:
        return await backend.cluster(
            lambda cluster: transaction_coordinator_view(cluster, transactional_id)
        )
    raise ValidationError("", "exactly one of group and transactional_id is required")
