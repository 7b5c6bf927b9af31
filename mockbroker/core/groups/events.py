"""The events and effects of a classic group, and the results of both types of groups.

All are frozen. A *callback* takes the result of a request and sends the answer. A group passes it
back with the result exactly once and never calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from mockbroker.core.groups.states import ClassicGroupState
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.streams.results import StreamsResult

NO_GENERATION = -1
NO_LEADER = ""
NO_MEMBER_ID = ""

# Names and metadata of the protocols that a member supports, in order of preference.
Protocols: TypeAlias = "tuple[tuple[str, bytes], ...]"


# -------------------------------------------------------------------------------------- results


class JoinedMember(msgspec.Struct, frozen=True):
    """One line of the member list that only the leader gets."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a Join. The defaults are those of an error."""

    error: ErrorCode
    member_id: str = NO_MEMBER_ID
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_LEADER
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a Sync: the member's own part of the assignment, opaque bytes."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatResult(msgspec.Struct, frozen=True):
    error: ErrorCode


class LeftMember(msgspec.Struct, frozen=True):
    """The result of one member of a Leave."""

    member_id: str
    instance_id: str | None
    error: ErrorCode


class LeaveResult(msgspec.Struct, frozen=True):
    error: ErrorCode
    members: tuple[LeftMember, ...] = ()


class ConsumerResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a ConsumerGroupHeartbeat. `assignment` is None if it is unchanged."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[bytes, tuple[int, ...]] | None = None


Result: TypeAlias = (
    "JoinResult | SyncResult | HeartbeatResult | LeaveResult | ConsumerResult | StreamsResult"
)


# --------------------------------------------------------------------------------------- events


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """JoinGroup. `new_member_id` is the id to give if the member has none (`member_id` empty).

    `member_id_required`: v4 and up, a new dynamic member must come back with its id (KIP-394).
    `skip_assignment`: v9 and up, a returning static leader can skip the assignment (KIP-814).
    """

    callback: object
    member_id: str
    new_member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    member_id_required: bool = True
    skip_assignment: bool = True
    reason: str = "not provided"


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """SyncGroup. The leader's has an assignment for each member, the others' have none."""

    callback: object
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = msgspec.field(default_factory=dict)


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    callback: object
    member_id: str
    generation: int
    instance_id: str | None = None


class Leaver(msgspec.Struct, frozen=True):
    """One member named in a LeaveGroup; an empty id with an instance id is removed by an
    administrator.
    """

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


class Leave(msgspec.Struct, frozen=True):
    callback: object
    members: tuple[Leaver, ...]


class Persisted(msgspec.Struct, frozen=True):
    """The outcome of a Persist effect: stored, or failed with `error`."""

    persist: Persist
    error: ErrorCode


class Tick(msgspec.Struct, frozen=True):
    """`deadline_ms()` may have been reached; without effect if it has not."""


class Rebalance(msgspec.Struct, frozen=True):
    """Start a rebalance for `reason`; without effect during one."""

    reason: str


class EndSession(msgspec.Struct, frozen=True):
    """Expire the member's session ahead of its timeout."""

    member_id: str


class Loaded(msgspec.Struct, frozen=True):
    """The group is loaded from the log, or downgraded from a consumer group: sessions start.

    A downgrade may give a reason to `rebalance`.
    """

    rebalance: str | None = None


class Unload(msgspec.Struct, frozen=True):
    """Waiting requests are answered with `error`, and the group becomes Dead.

    The coordinator has moved, or the group was upgraded (REBALANCE_IN_PROGRESS).
    """

    error: ErrorCode = ErrorCode.NOT_COORDINATOR


class Delete(msgspec.Struct, frozen=True):
    """The Empty group is deleted."""


Event: TypeAlias = (
    Join
    | Sync
    | Heartbeat
    | Leave
    | Persisted
    | Tick
    | Rebalance
    | EndSession
    | Loaded
    | Unload
    | Delete
)


# -------------------------------------------------------------------------------------- effects


class Reply(msgspec.Struct, frozen=True):
    """Answer the request that waits in `callback`."""

    callback: object
    result: Result


class MemberImage(msgspec.Struct, frozen=True):
    """A member in a record: of its protocols only the metadata of the chosen one."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupImage(msgspec.Struct, frozen=True):
    """The value of a GroupMetadata record."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberImage, ...] = ()


class StaticReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """The old values of a static member, restored if its new id cannot be stored."""

    callback: object
    instance_id: str
    old_member_id: str
    new_member_id: str
    old_leader: str
    old_protocols: Protocols
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
    skip_assignment: bool


class Persist(msgspec.Struct, frozen=True, kw_only=True):
    """Store the group and report the outcome with a Persisted event.

    `assignments` come from the leader and take effect once they are stored. `replaced` is a static
    member with a new id. With neither, the group became Empty and nothing depends on the outcome.
    """

    image: GroupImage
    assignments: Mapping[str, bytes] | None = None
    replaced: StaticReplacement | None = None


class Moved(msgspec.Struct, frozen=True):
    """The group has changed its state, for the journal."""

    previous: ClassicGroupState
    state: ClassicGroupState
    generation: int
    reason: str


Effect: TypeAlias = Reply | Persist | Moved
