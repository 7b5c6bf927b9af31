"""The controller, and the states of partitions and replicas with their history."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.core.replication.states import HISTORY_MAX
from mockbroker.core.validation import Range
from mockbroker.core.views.controller import (
    ControllerView,
    StateChangeView,
    controller_view,
    state_changes,
)


class TopicQuery(msgspec.Struct):
    topic: str | None = None


class HistoryQuery(msgspec.Struct):
    """The last `limit` changes, of all topics or of one."""

    topic: str | None = None
    limit: Annotated[int, Range(1, HISTORY_MAX)] = 1_000


def endpoints(api: Api) -> list[Endpoint]:
    async def states(call: Call) -> ControllerView:
        return await api.cluster(lambda c: controller_view(c, call.query.topic))

    async def history(call: Call) -> list[StateChangeView]:
        return await api.cluster(lambda c: state_changes(c, call.query.topic, call.query.limit))

    return [
        Endpoint(
            "GET",
            "/v1/controller",
            "The controller, and the states of partitions and replicas",
            states,
            ControllerView,
            TopicQuery,
        ),
        Endpoint(
            "GET",
            "/v1/controller/history",
            "History of these states",
            history,
            list[StateChangeView],
            HistoryQuery,
        ),
    ]
