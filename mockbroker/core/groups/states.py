"""The states of a classic group and what each of them answers: the theory, then the tables.

A classic group agrees in rounds. Members ask to join and are parked (PreparingRebalance) until
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


class Ask(Enum):
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


class Step(Enum):
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

ANSWERS: dict[State, dict[Ask, ErrorCode | Step]] = {
    State.EMPTY: {
        Ask.JOIN: UNKNOWN_MEMBER,
        Ask.SYNC: UNKNOWN_MEMBER,
        Ask.HEARTBEAT: UNKNOWN_MEMBER,
        Ask.COMMIT: UNKNOWN_MEMBER,
        Ask.PLAIN_COMMIT: NONE,
        Ask.TXN_COMMIT: NONE,
        Ask.LEAVE: UNKNOWN_MEMBER,
        Ask.DELETE_GROUP: NONE,
        Ask.DELETE_OFFSETS: NONE,
    },
    State.PREPARING: {
        Ask.JOIN: Step.PARK,
        Ask.SYNC: REBALANCING,
        Ask.HEARTBEAT: REBALANCING,
        # The old generation may still commit, so that consumers can do so as they give partitions
        # up.
        Ask.COMMIT: NONE,
        Ask.PLAIN_COMMIT: UNKNOWN_MEMBER,
        Ask.TXN_COMMIT: NONE,
        Ask.LEAVE: Step.REMOVE,
        Ask.DELETE_GROUP: NON_EMPTY,
        Ask.DELETE_OFFSETS: Step.UNSUBSCRIBED,
    },
    State.COMPLETING: {
        Ask.JOIN: Step.UNLESS_CHANGED,
        Ask.SYNC: Step.PARK,
        Ask.HEARTBEAT: NONE,
        # The member knows the new generation but not yet its assignment: what it commits is not its
        # own.
        Ask.COMMIT: REBALANCING,
        Ask.PLAIN_COMMIT: UNKNOWN_MEMBER,
        Ask.TXN_COMMIT: NONE,
        Ask.LEAVE: Step.REMOVE,
        Ask.DELETE_GROUP: NON_EMPTY,
        Ask.DELETE_OFFSETS: Step.UNSUBSCRIBED,
    },
    State.STABLE: {
        Ask.JOIN: Step.UNLESS_LEADER,
        Ask.SYNC: Step.ASSIGNMENT,
        Ask.HEARTBEAT: NONE,
        Ask.COMMIT: NONE,
        Ask.PLAIN_COMMIT: UNKNOWN_MEMBER,
        Ask.TXN_COMMIT: NONE,
        Ask.LEAVE: Step.REMOVE,
        Ask.DELETE_GROUP: NON_EMPTY,
        Ask.DELETE_OFFSETS: Step.UNSUBSCRIBED,
    },
    State.DEAD: {
        Ask.JOIN: NOT_AVAILABLE,
        Ask.SYNC: NOT_AVAILABLE,
        Ask.HEARTBEAT: NOT_AVAILABLE,
        Ask.COMMIT: NOT_AVAILABLE,
        Ask.PLAIN_COMMIT: NOT_AVAILABLE,
        Ask.TXN_COMMIT: NOT_AVAILABLE,
        Ask.LEAVE: NOT_AVAILABLE,
        Ask.DELETE_GROUP: NOT_FOUND,
        Ask.DELETE_OFFSETS: NOT_FOUND,
    },
}

# Questions that any answer but an error lets through with a re-armed session timer are answered by
# the two tables alone, in one look-up: Heartbeat is the most frequent request of a consumer.
HEARTBEAT_ANSWERS: dict[State, ErrorCode] = {
    state: answer
    for state, row in ANSWERS.items()
    if isinstance(answer := row[Ask.HEARTBEAT], ErrorCode)
}
