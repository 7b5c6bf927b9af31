"""The states of a classic group and what each of them answers: the theory, then the tables.

A classic group agrees in rounds. Members kind to join and are parked (PreparingRebalance) until
everybody is there or the slowest has run out of time. Then the *generation* grows by one, each
parked member is answered, the *leader* with the list of all, and the group waits for the leader to
hand in the assignment (CompletingRebalance). With it the members' parked SyncGroups are answered
and the group is Stable, until somebody comes, goes, falls silent or changes what it offers. A group
without members is Empty: it has offsets at most. Dead is the end: deleted, or unloaded because its
coordinator moved.

    Empty --------> PreparingRebalance <-------- Stable
      ^                |    ^      |                ^
      +----------------+    |      v                |
       nobody is left    CompletingRebalance -------+

Two tables say all that the state decides, each total over its two dimensions:

- `TRANSITIONS`: state x trigger -> next state. What is not there is `FORBIDDEN`, cell by cell. Only
  `ClassicGroup._move` writes a state, and only through this table.
- `ANSWERS`: state x question -> error code, or the step to take. The question is that of a known
  member with the current generation; unknown members, stale generations and fenced instances are
  refused before the state is looked at.

Source: ClassicGroupState and GroupMetadataManager of Kafka's group coordinator.
"""

from __future__ import annotations

from enum import Enum

from mockbroker_protocol import ErrorCode


class State(Enum):
    """States by the names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Trigger(Enum):
    """What moves a group from one state to another."""

    REBALANCE = "a rebalance is needed"
    JOINED = "the join phase is over, with members"
    EMPTIED = "the join phase is over, nobody is left"
    ASSIGNED = "the leader's assignment is stored"
    REMOVED = "the group is deleted or its coordinator has moved"


TRANSITIONS: dict[State, dict[Trigger, State]] = {
    State.EMPTY: {
        Trigger.REBALANCE: State.PREPARING,
        Trigger.REMOVED: State.DEAD,
    },
    State.PREPARING: {
        Trigger.JOINED: State.COMPLETING,
        Trigger.EMPTIED: State.EMPTY,
        Trigger.REMOVED: State.DEAD,
    },
    State.COMPLETING: {
        Trigger.REBALANCE: State.PREPARING,
        Trigger.ASSIGNED: State.STABLE,
        Trigger.REMOVED: State.DEAD,
    },
    State.STABLE: {
        Trigger.REBALANCE: State.PREPARING,
        Trigger.REMOVED: State.DEAD,
    },
    State.DEAD: {},
}

# The cells that must never be asked for; together with TRANSITIONS they cover every pair.
FORBIDDEN: dict[State, frozenset[Trigger]] = {
    State.EMPTY: frozenset({Trigger.JOINED, Trigger.EMPTIED, Trigger.ASSIGNED}),
    # A rebalance already under way takes in whoever comes; it is never prepared twice.
    State.PREPARING: frozenset({Trigger.REBALANCE, Trigger.ASSIGNED}),
    State.COMPLETING: frozenset({Trigger.JOINED, Trigger.EMPTIED}),
    State.STABLE: frozenset({Trigger.JOINED, Trigger.EMPTIED, Trigger.ASSIGNED}),
    State.DEAD: frozenset(Trigger),
}


class RequestKind(Enum):
    """What may be asked of a group, as far as its state decides the answer."""

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
    """Answers that depend on more than the state."""

    PARK = "hold the answer until the phase is over"
    UNLESS_CHANGED = (
        "answer with the current generation, or rebalance if what the member offers changed"
    )
    UNLESS_LEADER = "as UNLESS_CHANGED, but the leader always causes a rebalance"
    ASSIGNMENT = "answer with the member's stored assignment"
    REMOVE = "remove the member"
    UNSUBSCRIBED = "only offsets of topics that no member subscribes to"


NONE = ErrorCode.NONE
UNKNOWN_MEMBER = ErrorCode.UNKNOWN_MEMBER_ID
REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
NON_EMPTY = ErrorCode.NON_EMPTY_GROUP

ANSWERS: dict[State, dict[RequestKind, ErrorCode | RequestAction]] = {
    State.EMPTY: {
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
    State.PREPARING: {
        RequestKind.JOIN: RequestAction.PARK,
        RequestKind.SYNC: REBALANCING,
        RequestKind.HEARTBEAT: REBALANCING,
        # The old generation may still commit, so that consumers can do so as they give partitions
        # up.
        RequestKind.COMMIT: NONE,
        RequestKind.PLAIN_COMMIT: UNKNOWN_MEMBER,
        RequestKind.TXN_COMMIT: NONE,
        RequestKind.LEAVE: RequestAction.REMOVE,
        RequestKind.DELETE_GROUP: NON_EMPTY,
        RequestKind.DELETE_OFFSETS: RequestAction.UNSUBSCRIBED,
    },
    State.COMPLETING: {
        RequestKind.JOIN: RequestAction.UNLESS_CHANGED,
        RequestKind.SYNC: RequestAction.PARK,
        RequestKind.HEARTBEAT: NONE,
        # The member knows the new generation but not yet its assignment: what it commits is not its
        # own.
        RequestKind.COMMIT: REBALANCING,
        RequestKind.PLAIN_COMMIT: UNKNOWN_MEMBER,
        RequestKind.TXN_COMMIT: NONE,
        RequestKind.LEAVE: RequestAction.REMOVE,
        RequestKind.DELETE_GROUP: NON_EMPTY,
        RequestKind.DELETE_OFFSETS: RequestAction.UNSUBSCRIBED,
    },
    State.STABLE: {
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
    State.DEAD: {
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

# Questions that any answer but an error lets through with a re-armed session timer are answered by
# the two tables alone, in one look-up: Heartbeat is the most frequent request of a consumer.
HEARTBEAT_ANSWERS: dict[State, ErrorCode] = {
    state: answer
    for state, row in ANSWERS.items()
    if isinstance(answer := row[RequestKind.HEARTBEAT], ErrorCode)
}
