"""The states of a classic group, and the answer of each state to each request.

In PreparingRebalance the group waits until all members have sent JoinGroup or the rebalance timeout
is over. Then the *generation* rises by one and each JoinGroup is answered; the *leader* gets the
list of members. In CompletingRebalance the group waits for the leader's SyncGroup, which has the
assignment. Then each SyncGroup is answered and the group is Stable, until a member joins, leaves,
expires or changes its protocols. A group without members is Empty; it may have offsets. Dead is the
final state: the group is deleted, or unloaded because its coordinator has moved.

    Empty --------> PreparingRebalance <-------- Stable
      ^                |    ^      |                ^
      +----------------+    |      v                |
         no members      CompletingRebalance -------+

Two tables have everything that depends on the state. Each is total over its two dimensions:

- `TRANSITIONS`: state x trigger -> next state. All other cells are in `FORBIDDEN`. Only
  `ClassicGroup.transition_to` writes a state, and only by this table.
- `ANSWERS`: state x request -> error code or action. The request is that of a known member with the
  current generation; unknown members, stale generations and fenced instances are refused before.

Source: ClassicGroupState, GroupMetadataManager.
"""

from __future__ import annotations

from enum import Enum

from mockbroker_protocol import ErrorCode


class ClassicGroupState(Enum):
    """States, with their names in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Trigger(Enum):
    """The cause of a transition."""

    REBALANCE = "a rebalance is needed"
    JOINED = "the join phase is over, with members"
    EMPTIED = "the join phase is over, nobody is left"
    ASSIGNED = "the leader's assignment is stored"
    REMOVED = "the group is deleted or its coordinator has moved"


TRANSITIONS: dict[ClassicGroupState, dict[Trigger, ClassicGroupState]] = {
    ClassicGroupState.EMPTY: {
        Trigger.REBALANCE: ClassicGroupState.PREPARING,
        Trigger.REMOVED: ClassicGroupState.DEAD,
    },
    ClassicGroupState.PREPARING: {
        Trigger.JOINED: ClassicGroupState.COMPLETING,
        Trigger.EMPTIED: ClassicGroupState.EMPTY,
        Trigger.REMOVED: ClassicGroupState.DEAD,
    },
    ClassicGroupState.COMPLETING: {
        Trigger.REBALANCE: ClassicGroupState.PREPARING,
        Trigger.ASSIGNED: ClassicGroupState.STABLE,
        Trigger.REMOVED: ClassicGroupState.DEAD,
    },
    ClassicGroupState.STABLE: {
        Trigger.REBALANCE: ClassicGroupState.PREPARING,
        Trigger.REMOVED: ClassicGroupState.DEAD,
    },
    ClassicGroupState.DEAD: {},
}

# The transitions that must not occur; with TRANSITIONS they cover each pair.
FORBIDDEN: dict[ClassicGroupState, frozenset[Trigger]] = {
    ClassicGroupState.EMPTY: frozenset({Trigger.JOINED, Trigger.EMPTIED, Trigger.ASSIGNED}),
    # New members join the rebalance that is in progress; it does not start again.
    ClassicGroupState.PREPARING: frozenset({Trigger.REBALANCE, Trigger.ASSIGNED}),
    ClassicGroupState.COMPLETING: frozenset({Trigger.JOINED, Trigger.EMPTIED}),
    ClassicGroupState.STABLE: frozenset({Trigger.JOINED, Trigger.EMPTIED, Trigger.ASSIGNED}),
    ClassicGroupState.DEAD: frozenset(Trigger),
}


class RequestKind(Enum):
    """The requests whose answer depends on the state."""

    JOIN = "JoinGroup of a known member"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    COMMIT = "OffsetCommit of a member"
    PLAIN_COMMIT = "OffsetCommit without member and generation"
    TXN_COMMIT = "TxnOffsetCommit"
    LEAVE = "LeaveGroup"
    DELETE_GROUP = "DeleteGroups"
    DELETE_OFFSETS = "OffsetDelete"


class RequestAction(Enum):
    """Actions where the answer depends on more than the state."""

    PARK = "hold the answer until the phase is over"
    UNLESS_CHANGED = (
        "answer with the current generation, or rebalance if the member's protocols changed"
    )
    UNLESS_LEADER = "as UNLESS_CHANGED, but the leader always starts a rebalance"
    ASSIGNMENT = "answer with the member's stored assignment"
    REMOVE = "remove the member"
    UNSUBSCRIBED = "only offsets of topics that no member subscribes to"


NONE = ErrorCode.NONE
UNKNOWN_MEMBER = ErrorCode.UNKNOWN_MEMBER_ID
REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
NON_EMPTY = ErrorCode.NON_EMPTY_GROUP

ANSWERS: dict[ClassicGroupState, dict[RequestKind, ErrorCode | RequestAction]] = {
    ClassicGroupState.EMPTY: {
        RequestKind.JOIN: UNKNOWN_MEMBER,
        RequestKind.SYNC: UNKNOWN_MEMBER,
        RequestKind.HEARTBEAT: UNKNOWN_MEMBER,
        RequestKind.COMMIT: UNKNOWN_MEMBER,
        RequestKind.PLAIN_COMMIT: NONE,
        RequestKind.TXN_COMMIT: NONE,
        RequestKind.LEAVE: UNKNOWN_MEMBER,
        RequestKind.DELETE_GROUP: NONE,
        RequestKind.DELETE_OFFSETS: NONE,
    },
    ClassicGroupState.PREPARING: {
        RequestKind.JOIN: RequestAction.PARK,
        RequestKind.SYNC: REBALANCING,
        RequestKind.HEARTBEAT: REBALANCING,
        # Members of the old generation may commit when they revoke partitions.
        RequestKind.COMMIT: NONE,
        RequestKind.PLAIN_COMMIT: UNKNOWN_MEMBER,
        RequestKind.TXN_COMMIT: NONE,
        RequestKind.LEAVE: RequestAction.REMOVE,
        RequestKind.DELETE_GROUP: NON_EMPTY,
        RequestKind.DELETE_OFFSETS: RequestAction.UNSUBSCRIBED,
    },
    ClassicGroupState.COMPLETING: {
        RequestKind.JOIN: RequestAction.UNLESS_CHANGED,
        RequestKind.SYNC: RequestAction.PARK,
        RequestKind.HEARTBEAT: NONE,
        # The member has the new generation without its assignment, so it owns no partition yet.
        RequestKind.COMMIT: REBALANCING,
        RequestKind.PLAIN_COMMIT: UNKNOWN_MEMBER,
        RequestKind.TXN_COMMIT: NONE,
        RequestKind.LEAVE: RequestAction.REMOVE,
        RequestKind.DELETE_GROUP: NON_EMPTY,
        RequestKind.DELETE_OFFSETS: RequestAction.UNSUBSCRIBED,
    },
    ClassicGroupState.STABLE: {
        RequestKind.JOIN: RequestAction.UNLESS_LEADER,
        RequestKind.SYNC: RequestAction.ASSIGNMENT,
        RequestKind.HEARTBEAT: NONE,
        RequestKind.COMMIT: NONE,
        RequestKind.PLAIN_COMMIT: UNKNOWN_MEMBER,
        RequestKind.TXN_COMMIT: NONE,
        RequestKind.LEAVE: RequestAction.REMOVE,
        RequestKind.DELETE_GROUP: NON_EMPTY,
        RequestKind.DELETE_OFFSETS: RequestAction.UNSUBSCRIBED,
    },
    ClassicGroupState.DEAD: {
        RequestKind.JOIN: NOT_AVAILABLE,
        RequestKind.SYNC: NOT_AVAILABLE,
        RequestKind.HEARTBEAT: NOT_AVAILABLE,
        RequestKind.COMMIT: NOT_AVAILABLE,
        RequestKind.PLAIN_COMMIT: NOT_AVAILABLE,
        RequestKind.TXN_COMMIT: NOT_AVAILABLE,
        RequestKind.LEAVE: NOT_AVAILABLE,
        RequestKind.DELETE_GROUP: NOT_FOUND,
        RequestKind.DELETE_OFFSETS: NOT_FOUND,
    },
}

# Heartbeat is the most frequent request of a consumer, so it gets a table with one look-up.
HEARTBEAT_ANSWERS: dict[ClassicGroupState, ErrorCode] = {
    state: answer
    for state, row in ANSWERS.items()
    if isinstance(answer := row[RequestKind.HEARTBEAT], ErrorCode)
}
