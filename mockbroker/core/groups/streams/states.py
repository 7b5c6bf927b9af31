r"""The states of a streams group and of its members (KIP-1071).

A heartbeat has five steps:

1. The member is created or updated.
2. The first member brings the *topology*. Others may join with an older epoch of it; they are told
   that it is stale, and get tasks all the same.
3. The topology is *configured* again if it is new or a topic of it has changed: source topics must
   exist, copartitioned topics must have as many partitions as each other, internal topics must
   exist. Missing internal topics are created by the broker after the heartbeat.
4. Each of these, and a change of the assignment configs, raises the *group epoch*. If it is ahead
   of the *assignment epoch*, the assignor computes a new *target assignment*: not before the
   initial rebalance delay of a new group is over, and at most once in an assignment interval.
5. The member is *reconciled* with its target. It revokes tasks at its old *member epoch*. Then it
   moves to the assignment epoch and gets the tasks that are free.

A task is free for an active assignment when no process has it active, and the member's own process
has no standby or warm-up of it. It is free for a standby or a warm-up when the member's own process
has it in no kind, because both would use one state directory.

    member:   Stable --(must revoke)--> UnrevokedTasks --(has revoked)-----+
                ^  \                                                       |
                |   +--(must wait)--> UnreleasedTasks                      |
                |                              |                           |
                +------------------------------+---------------------------+

The state of a group follows from facts (`GROUP_STATES`). Only `reconcile` writes the state of a
member, by `RECONCILE_ACTIONS` and `ADVANCE_RESULTS`.

Source: StreamsGroup, CurrentAssignmentBuilder, MemberState.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

from mockbroker_protocol import ErrorCode


class StreamsGroupState(Enum):
    """States, with their names in StreamsGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupFacts(NamedTuple):
    """The facts that decide a group's state."""

    has_members: bool
    validated: bool  # the epoch of the topology is the validated one
    assigned: bool  # the assignment epoch has caught up with the group epoch
    reconciled: bool  # every member is Stable at the assignment epoch


# Total over the facts. A Dead group is removed from the shard's table.
GROUP_STATES: dict[GroupFacts, StreamsGroupState] = {
    GroupFacts(False, False, False, False): StreamsGroupState.EMPTY,
    GroupFacts(False, False, False, True): StreamsGroupState.EMPTY,
    GroupFacts(False, False, True, False): StreamsGroupState.EMPTY,
    GroupFacts(False, False, True, True): StreamsGroupState.EMPTY,
    GroupFacts(False, True, False, False): StreamsGroupState.EMPTY,
    GroupFacts(False, True, False, True): StreamsGroupState.EMPTY,
    GroupFacts(False, True, True, False): StreamsGroupState.EMPTY,
    GroupFacts(False, True, True, True): StreamsGroupState.EMPTY,
    GroupFacts(True, False, False, False): StreamsGroupState.NOT_READY,
    GroupFacts(True, False, False, True): StreamsGroupState.NOT_READY,
    GroupFacts(True, False, True, False): StreamsGroupState.NOT_READY,
    GroupFacts(True, False, True, True): StreamsGroupState.NOT_READY,
    GroupFacts(True, True, False, False): StreamsGroupState.ASSIGNING,
    GroupFacts(True, True, False, True): StreamsGroupState.ASSIGNING,
    GroupFacts(True, True, True, False): StreamsGroupState.RECONCILING,
    GroupFacts(True, True, True, True): StreamsGroupState.STABLE,
}

# DeleteGroups: only an Empty group may be deleted.
DELETE_ANSWERS: dict[StreamsGroupState, ErrorCode] = {
    StreamsGroupState.EMPTY: ErrorCode.NONE,
    StreamsGroupState.NOT_READY: ErrorCode.NON_EMPTY_GROUP,
    StreamsGroupState.ASSIGNING: ErrorCode.NON_EMPTY_GROUP,
    StreamsGroupState.RECONCILING: ErrorCode.NON_EMPTY_GROUP,
    StreamsGroupState.STABLE: ErrorCode.NON_EMPTY_GROUP,
    StreamsGroupState.DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
}


class MemberState(IntEnum):
    """The progress of a member towards its target assignment. The values are those in the log."""

    STABLE = 1
    UNREVOKED = 2  # it has tasks to revoke
    UNRELEASED = 3  # it waits for tasks that others have to revoke
    UNKNOWN = 127  # written by a later release


class ReconcileAction(Enum):
    """The action of a reconciliation."""

    KEEP = "nothing"
    ADVANCE = "move it towards the target assignment"
    ADVANCE_NEXT = "the same; if it must revoke again, at the epoch after its own"
    ADVANCE_TARGET = "the same; if it must revoke, at the assignment epoch"
    FENCE = "fence it, so that it joins again without tasks"


# When a member in a state is due to advance.
DUE: dict[MemberState, str] = {
    MemberState.STABLE: "its epoch is not the assignment epoch",
    MemberState.UNREVOKED: "it no longer owns a task that it has to revoke",
    MemberState.UNRELEASED: "always, because the tasks may have become free",
    MemberState.UNKNOWN: "it owns no task",
}

# By state, and whether the member is due.
RECONCILE_ACTIONS: dict[MemberState, dict[bool, ReconcileAction]] = {
    MemberState.STABLE: {False: ReconcileAction.KEEP, True: ReconcileAction.ADVANCE},
    MemberState.UNREVOKED: {False: ReconcileAction.KEEP, True: ReconcileAction.ADVANCE_NEXT},
    # This state is always due.
    MemberState.UNRELEASED: {False: ReconcileAction.ADVANCE, True: ReconcileAction.ADVANCE},
    MemberState.UNKNOWN: {False: ReconcileAction.FENCE, True: ReconcileAction.ADVANCE_TARGET},
}


class AdvanceFacts(NamedTuple):
    """The facts that decide the member's next state."""

    must_revoke: bool
    must_wait: bool


class AdvanceResult(NamedTuple):
    state: MemberState
    takes_target_epoch: bool


ADVANCE_RESULTS: dict[AdvanceFacts, AdvanceResult] = {
    AdvanceFacts(False, False): AdvanceResult(MemberState.STABLE, True),
    AdvanceFacts(False, True): AdvanceResult(MemberState.UNRELEASED, True),
    # A member gets no task before it has revoked the others.
    AdvanceFacts(True, False): AdvanceResult(MemberState.UNREVOKED, False),
    AdvanceFacts(True, True): AdvanceResult(MemberState.UNREVOKED, False),
}


class StatusCode(IntEnum):
    """The status of a member in a heartbeat's answer (StreamsGroupHeartbeatResponse.Status)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
