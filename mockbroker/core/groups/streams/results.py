"""The answer to a StreamsGroupHeartbeat."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from mockbroker.core.groups.streams.configured import CreatableTopic
from mockbroker.core.groups.streams.members import Endpoint
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker.core.groups.streams.tasks import TaskLines
from mockbroker_protocol import ErrorCode

# Topic and partitions.
PartitionLines = tuple[tuple[str, tuple[int, ...]], ...]


class Status(NamedTuple):
    code: StatusCode
    detail: str


class EndpointPartitions(NamedTuple):
    """The partitions that a process reads, and those of which it has a copy of the state."""

    endpoint: Endpoint
    active: PartitionLines
    standby: PartitionLines


class StreamsResult(msgspec.Struct, frozen=True, kw_only=True):
    """`assigned` are active, standby and warm-up tasks, None if they are unchanged; so for
    `endpoints`. `missing` are internal topics that the broker must create. `limit`
    is the config of the protective limit that a refused member's topology exceeds.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str = ""
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    statuses: tuple[Status, ...] = ()
    assigned: tuple[TaskLines, TaskLines, TaskLines] | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    missing: tuple[CreatableTopic, ...] = ()
    limit: str | None = None
