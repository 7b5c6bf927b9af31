"""Which broker coordinates what, and by which partition."""

from __future__ import annotations

import msgspec

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.core.faults.errors import RuleError
from mockbroker.core.views.coordinators import (
    CoordinatorView,
    group_coordinator_view,
    transaction_coordinator_view,
)


class CoordinatorQuery(msgspec.Struct):
    """One of the two."""

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
        raise RuleError("", "either a group or a transactional_id is asked for")

    return [
        Endpoint(
            "GET",
            "/v1/coordinator",
            "Who coordinates a group or transactional id, and by which partition",
            coordinator,
            CoordinatorView,
            CoordinatorQuery,
        )
    ]
