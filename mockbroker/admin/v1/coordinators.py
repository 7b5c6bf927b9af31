"""Coordinators of groups and transactional ids, and their partitions."""

from __future__ import annotations

import msgspec

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.core.validation import ValidationError
from mockbroker.core.views.coordinators import (
    CoordinatorView,
    group_coordinator_view,
    transaction_coordinator_view,
)


class CoordinatorQuery(msgspec.Struct):
    """Exactly one of the two."""

    group: str | None = None
    transactional_id: str | None = None


def endpoints(api: Api) -> list[Endpoint]:
    async def coordinator(call: Call) -> CoordinatorView:
        query: CoordinatorQuery = call.query
        group, transactional_id = query.group, query.transactional_id
        if group is not None and transactional_id is None:
            return await api.cluster(lambda c: group_coordinator_view(c, group))
        if group is None and transactional_id is not None:
            return await api.cluster(lambda c: transaction_coordinator_view(c, transactional_id))
        raise ValidationError("", "exactly one of group and transactional_id is required")

    return [
        Endpoint(
            "GET",
            "/v1/coordinator",
            "Coordinator and partition of a group or transactional id",
            coordinator,
            CoordinatorView,
            CoordinatorQuery,
        )
    ]
