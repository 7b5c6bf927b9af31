"""What a classic group is told (events), what it wants done (effects), and its answers (results).

All are frozen. A *slot* is whatever stands for the request that waits for an answer; the group
keeps it and gives it back with the result, exactly once, and never looks inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.states import State
from mockbroker_protocol import ErrorCode

NO_GENERATION = -1
NO_LEADER = ""
NO_MEMBER_ID = ""

# Names and metadata of the protocols a member offers, in order of its preference.
Protocols: TypeAlias = "tuple[tuple[str, bytes], ...]"


# -------------------------------------------------------------------------------------- results


class JoinedMember(msgspec.Struct, frozen=True):
    """One line of the member list that only the leader gets."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a Join; without its defaults, the answer of success."""

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
    """How one of the members named in a Leave fared."""

    member_id: str
    instance_id: str | None
    error: ErrorCode


class LeaveResult(msgspec.Struct, frozen=True):
    error: ErrorCode
    members: tuple[LeftMember, ...] = ()


Result: TypeAlias = JoinResult | SyncResult | HeartbeatResult | LeaveResult


# --------------------------------------------------------------------------------------- events


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """JoinGroup. `new_member_id` is the id to give if the member has none (`member_id` empty).

    `member_id_required`: v4 and up, a new dynamic member must come back with its id (KIP-394).
    `skip_assignment`: v9 and up, a returning static leader can be told not to assign (KIP-814).
    """

    slot: object
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

    slot: object
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = msgspec.field(default_factory=dict)


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    slot: object
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
    slot: object
    members: tuple[Leaver, ...]


class Persisted(msgspec.Struct, frozen=True):
    """What a Persist effect asked for has been stored, or has failed with `error`."""

    persist: Persist
    error: ErrorCode


class Tick(msgspec.Struct, frozen=True):
    """`deadline_ms()` has been reached, or somebody thinks so; harmless when it has not."""


class Rebalance(msgspec.Struct, frozen=True):
    """Somebody wants a round, for the reason given; harmless while one is going on."""

    reason: str


class EndSession(msgspec.Struct, frozen=True):
    """The member's session is over, though it may have been heard a moment ago."""

    member_id: str


class Loaded(msgspec.Struct, frozen=True):
    """The group has been read back from the log, whole: sessions start to run.

    Or it has been made of a consumer group, which may be a `rebalance` reason.
    """

    rebalance: str | None = None


class Unload(msgspec.Struct, frozen=True):
    """The coordinator has moved: whoever waits is told to look for the new one.

    Or the group has become one of another protocol: whoever waits is to join that one.
    """

    error: ErrorCode = ErrorCode.NOT_COORDINATOR


class Delete(msgspec.Struct, frozen=True):
    """The group is gone for good; only asked of an Empty group."""


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
    """Answer the request that waits in `slot`."""

    slot: object
    result: Result


class MemberImage(msgspec.Struct, frozen=True):
    """A member as it is stored: only what it offered under the chosen protocol survives."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupImage(msgspec.Struct, frozen=True):
    """A group as it is stored: a GroupMetadata record without its key."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberImage, ...] = ()


class StaticReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """What to undo if a returning static member's new id cannot be stored."""

    slot: object
    instance_id: str
    old_member_id: str
    new_member_id: str
    old_leader: str
    old_protocols: Protocols
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
    skip_assignment: bool


class Persist(msgspec.Struct, frozen=True, kw_only=True):
    """Store the group and say how it went with a Persisted event.

    `assignments` is the leader's, not in force before it is stored; `replaced` a static member's
    return. With neither, the group became Empty and nothing depends on the outcome.
    """

    image: GroupImage
    assignments: Mapping[str, bytes] | None = None
    replaced: StaticReplacement | None = None


class Moved(msgspec.Struct, frozen=True):
    """The group went from one state to another: nothing to do, something to write down."""

    previous: State
    state: State
    generation: int
    reason: str


Effect: TypeAlias = Reply | Persist | Moved
