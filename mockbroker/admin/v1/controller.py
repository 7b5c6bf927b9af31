"""The controller, and the states of partitions and replicas with their history."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mockbroker.admin.v1.cluster import TopicQuery
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.core.replication.states import HISTORY_MAX
from mockbroker.core.validation import Range
from mockbroker.core.views.controller import (
    controller_view,
    state_changes,
)

endpoints = ApiEndpoints()


class HistoryQuery(msgspec.Struct):
    """The last `limit` changes, of all topics or of one."""

    topic: str | None = None
    limit: Annotated[int, Range(1, HISTORY_MAX)] = 1_000


endpoints.show(
    "/v1/controller",
    "The controller, and the states of partitions and replicas",
    controller_view,
    query=TopicQuery,
)
endpoints.show(
    "/v1/controller/history", "History of these states", state_changes, query=HistoryQuery
)
