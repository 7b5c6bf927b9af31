"""The events, effects and stored changes that only a streams group has; see `modern.events`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.modern.events import GroupChange as ModernGroupChange
from mockbroker.core.groups.modern.events import Store, StoredChange
from mockbroker.core.groups.streams.configured import ConfiguredTopology
from mockbroker.core.groups.streams.members import Endpoint
from mockbroker.core.groups.streams.tasks import TaskLines
from mockbroker.core.groups.streams.topology import Subtopology, Topology

# --------------------------------------------------------------------------------------- events


class SentTopology(msgspec.Struct, frozen=True):
    """A topology as a member sends it; it may be invalid."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]


class StreamsHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """StreamsGroupHeartbeat of a member that joins (epoch 0) or stays. None is "unchanged".

    `active`, `standby` and `warmup` are the tasks that the member owns: all three, or none.
    `endpoint_epoch` is the last one that the member has seen.
    """

    callback: object
    member_id: str
    epoch: int
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topology: SentTopology | None = None
    active: TaskLines | None = None
    standby: TaskLines | None = None
    warmup: TaskLines | None = None
    process_id: str | None = None
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    shutdown: bool = False
    endpoint_epoch: int = 0
    client_id: str = ""
    client_host: str = ""


class StreamsLeave(msgspec.Struct, frozen=True, kw_only=True):
    """StreamsGroupHeartbeat with epoch -1."""

    callback: object
    member_id: str
    epoch: int
    shutdown: bool = False


# -------------------------------------------------------------------------------------- changes


class GroupChange(ModernGroupChange, frozen=True):
    """Also the epoch of the validated topology (-1 without one) and the assignment configs."""

    validated_epoch: int = -1
    configs: Mapping[str, str] = msgspec.field(default_factory=dict)


class TopologyChange(StoredChange, frozen=True):
    """The topology. None: removed."""

    value_field = "topology"
    topology: Topology | None


# -------------------------------------------------------------------------------------- effects


class Unstored(msgspec.Struct, frozen=True, kw_only=True):
    """State that is not in the log. A stored change applies it too; a group that the same change
    creates begins without it, as in Kafka.
    """

    configured: ConfiguredTopology | None = None
    compared_version: int | None = None


class StreamsStore(Store, frozen=True, kw_only=True):
    """A Store; once the changes are stored, `unstored` is applied too."""

    unstored: Unstored = Unstored()


Effect: TypeAlias = Reply | Store
