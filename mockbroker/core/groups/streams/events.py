"""The events, effects and stored changes of a streams group.

All are frozen. The machine of a group computes *changes*; each is one record of
`__consumer_offsets`. A Store effect requests that they are stored, and stored changes are applied.
Loading applies the same changes in the same order. Callbacks are those of `groups.events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker.core.groups.streams.configured import ConfiguredTopology
from mockbroker.core.groups.streams.members import Endpoint, StreamsMember
from mockbroker.core.groups.streams.states import MemberState
from mockbroker.core.groups.streams.tasks import OwnedTasks, TaskLines, Tasks
from mockbroker.core.groups.streams.topology import Subtopology, Topology
from mockbroker_protocol import ErrorCode

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


class Stored(msgspec.Struct, frozen=True):
    """The outcome of a Store effect: stored, or failed with `error`. `created`: the group is in the
    log since these changes.
    """

    store: Store
    error: ErrorCode
    created: bool = False


# -------------------------------------------------------------------------------------- changes


class GroupChange(msgspec.Struct, frozen=True):
    """The group epoch, a hash of the metadata of all required topics, the epoch of the validated
    topology (-1 without one), and the assignment configs. None: deleted.
    """

    epoch: int | None
    metadata_hash: int = 0
    validated_epoch: int = -1
    configs: Mapping[str, str] = msgspec.field(default_factory=dict)


class TopologyChange(msgspec.Struct, frozen=True):
    """The topology. None: removed."""

    topology: Topology | None


class MemberChange(msgspec.Struct, frozen=True):
    """A member without its epochs and tasks. None: removed."""

    member_id: str
    member: StreamsMember | None


class TargetEpochChange(msgspec.Struct, frozen=True):
    """The assignment epoch, and when the assignor finished. None: the target is removed."""

    epoch: int | None
    timestamp_ms: int = 0


class TargetAssignmentChange(msgspec.Struct, frozen=True):
    """A member's target assignment. None: removed."""

    member_id: str
    target: Tasks | None


class CurrentAssignment(msgspec.Struct, frozen=True):
    """A member's epochs and tasks."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: OwnedTasks
    revoking: OwnedTasks


class CurrentAssignmentChange(msgspec.Struct, frozen=True):
    """A member's current assignment. None: removed."""

    member_id: str
    current: CurrentAssignment | None


Change: TypeAlias = (
    GroupChange
    | TopologyChange
    | MemberChange
    | TargetEpochChange
    | TargetAssignmentChange
    | CurrentAssignmentChange
)

_VALUES = {
    GroupChange: "epoch",
    TopologyChange: "topology",
    MemberChange: "member",
    TargetEpochChange: "epoch",
    TargetAssignmentChange: "target",
    CurrentAssignmentChange: "current",
}


def is_tombstone(change: Change) -> bool:
    """Whether the change removes something."""
    return getattr(change, _VALUES[type(change)]) is None


def current_assignment_change(member: StreamsMember) -> CurrentAssignmentChange:
    """The change with a member's epochs and tasks."""
    current = CurrentAssignment(
        member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking
    )
    return CurrentAssignmentChange(member.member_id, current)


def removal(member_id: str) -> tuple[Change, ...]:
    """The changes that remove a member."""
    return (
        CurrentAssignmentChange(member_id, None),
        TargetAssignmentChange(member_id, None),
        MemberChange(member_id, None),
    )


# -------------------------------------------------------------------------------------- effects


class Unstored(msgspec.Struct, frozen=True, kw_only=True):
    """State that is not in the log. A stored change applies it too; a group that the same change
    creates begins without it, as in Kafka.
    """

    configured: ConfiguredTopology | None = None
    compared_version: int | None = None


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """Store the changes as one batch and report the outcome with a Stored event.

    Once they are stored, `unstored` is applied, `answer` is sent and `timers` are set. If a write
    without an answer fails, `retry` is set.
    """

    changes: tuple[Change, ...]
    unstored: Unstored = Unstored()
    answer: Reply | None = None
    timers: tuple[SetTimer, ...] = ()
    retry: SetTimer | None = None


Effect: TypeAlias = Reply | Store
