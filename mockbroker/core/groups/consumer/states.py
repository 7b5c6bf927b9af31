r"""A consumer group of the new protocol (KIP-848): what its states mean, and its members' states.

There are no rounds. Each heartbeat may do three things, one after the other, and each of them
raises an epoch of its own:

1. The member is created or changes its subscription, or the metadata of a subscribed topic has
   changed since somebody looked: the *group epoch* rises.
2. The group epoch is ahead of the *assignment epoch*: an assignor shares the partitions out anew
   (the *target assignment*), and the assignment epoch catches up. At most once in an assignment
   interval; until then the old target stands.
3. The member is behind the target: it is *reconciled*. It first gives up what is no longer its
   own, at its old *member epoch*; then it moves to the assignment epoch and is given what is free.
   What others have yet to give up comes to it with later heartbeats.

So one slow member holds up only those who wait for its partitions. A partition is never given to a
second member before the first one has reported its revocation by no longer listing it.

    member:   Stable --(loses something)--> UnrevokedPartitions --(gave it up)--+
                ^  \                                                            |
                |   +--(something is not free yet)--> UnreleasedPartitions      |
                |                                          |                    |
                +------------------------------------------+--------------------+

A group has no state of its own: it is read off the epochs and the members' states
(`GROUP_STATES`). A member's state is written by `reconcile` alone, through `ADVANCE_RESULTS`.

Source: ConsumerGroup, CurrentAssignmentBuilder and MemberState of Kafka's group coordinator.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

from mockbroker_protocol import ErrorCode

LEAVE_EPOCH = -1  # in a request: the member leaves; in a member: its assignment is gone
STATIC_LEAVE_EPOCH = -2  # a static member left and may come back within its session
JOIN_EPOCH = 0


class GroupState(Enum):
    """States by the names that ConsumerGroupDescribe and ListGroups show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupFacts(NamedTuple):
    """What a group's state depends on."""

    has_members: bool
    assigned: bool  # the assignment epoch has caught up with the group epoch
    reconciled: bool  # every member is Stable at the assignment epoch


# Total over the facts. Dead is not here: a group that is gone is in no table.
GROUP_STATES: dict[GroupFacts, GroupState] = {
    GroupFacts(False, False, False): GroupState.EMPTY,
    GroupFacts(False, False, True): GroupState.EMPTY,
    GroupFacts(False, True, False): GroupState.EMPTY,
    GroupFacts(False, True, True): GroupState.EMPTY,
    GroupFacts(True, False, False): GroupState.ASSIGNING,
    GroupFacts(True, False, True): GroupState.ASSIGNING,
    GroupFacts(True, True, False): GroupState.RECONCILING,
    GroupFacts(True, True, True): GroupState.STABLE,
}

# DeleteGroups: only an Empty group goes.
DELETE_ANSWERS: dict[GroupState, ErrorCode] = {
    GroupState.EMPTY: ErrorCode.NONE,
    GroupState.ASSIGNING: ErrorCode.NON_EMPTY_GROUP,
    GroupState.RECONCILING: ErrorCode.NON_EMPTY_GROUP,
    GroupState.STABLE: ErrorCode.NON_EMPTY_GROUP,
    GroupState.DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
}


class MemberState(IntEnum):
    """How far a member is on its way to the target assignment, by the codes in the log."""

    STABLE = 0
    UNREVOKED = 1  # it has yet to give partitions up
    UNRELEASED = 2  # it waits for partitions that others have yet to give up
    UNKNOWN = 127  # written by a later release


class ReconcileAction(Enum):
    """What reconciliation does with a member."""

    KEEP = "nothing"
    TRIM = "take away the topics it no longer subscribes to, at its present epoch"
    ADVANCE = "move it towards the target assignment"
    FENCE = "refuse it, so that it comes back with nothing"


class ReconcileFacts(NamedTuple):
    """What decides the step, beside the member's state."""

    due: bool  # see DUE
    resubscribed: bool  # this very heartbeat changed the subscription


# When a member in a state is due to move on.
DUE: dict[MemberState, str] = {
    MemberState.STABLE: "its epoch is not the assignment epoch",
    MemberState.UNREVOKED: "it no longer owns anything that it has to give up",
    MemberState.UNRELEASED: "always: what it waits for may have become free",
    MemberState.UNKNOWN: "it owns nothing",
}

_BY_DUE: dict[ReconcileFacts, ReconcileAction] = {
    ReconcileFacts(False, False): ReconcileAction.KEEP,
    ReconcileFacts(False, True): ReconcileAction.TRIM,
    ReconcileFacts(True, False): ReconcileAction.ADVANCE,
    ReconcileFacts(True, True): ReconcileAction.ADVANCE,
}

RECONCILE_ACTIONS: dict[MemberState, dict[ReconcileFacts, ReconcileAction]] = {
    MemberState.STABLE: _BY_DUE,
    MemberState.UNREVOKED: _BY_DUE,
    MemberState.UNRELEASED: {
        # Never not due.
        ReconcileFacts(False, False): ReconcileAction.ADVANCE,
        ReconcileFacts(False, True): ReconcileAction.ADVANCE,
        ReconcileFacts(True, False): ReconcileAction.ADVANCE,
        ReconcileFacts(True, True): ReconcileAction.ADVANCE,
    },
    MemberState.UNKNOWN: {
        ReconcileFacts(False, False): ReconcileAction.FENCE,
        ReconcileFacts(False, True): ReconcileAction.FENCE,
        ReconcileFacts(True, False): ReconcileAction.ADVANCE,
        ReconcileFacts(True, True): ReconcileAction.ADVANCE,
    },
}


class AdvanceFacts(NamedTuple):
    """What is left to do after a member was moved as far as it goes."""

    must_revoke: bool
    must_wait: bool


class AdvanceResult(NamedTuple):
    state: MemberState
    takes_target_epoch: bool


ADVANCE_RESULTS: dict[AdvanceFacts, AdvanceResult] = {
    AdvanceFacts(False, False): AdvanceResult(MemberState.STABLE, True),
    AdvanceFacts(False, True): AdvanceResult(MemberState.UNRELEASED, True),
    # It keeps its epoch, and is given nothing, before it has given up what is not its own.
    AdvanceFacts(True, False): AdvanceResult(MemberState.UNREVOKED, False),
    AdvanceFacts(True, True): AdvanceResult(MemberState.UNREVOKED, False),
}


class MigrationPolicy(NamedTuple):
    """Which way a group may change its protocol while it has members."""

    upgrade: bool
    downgrade: bool


# By the values of group.consumer.migration.policy. Where neither is allowed, classic members may
# not even join a consumer group.
MIGRATION_POLICIES: dict[str, MigrationPolicy] = {
    "bidirectional": MigrationPolicy(True, True),
    "upgrade": MigrationPolicy(True, False),
    "downgrade": MigrationPolicy(False, True),
    "disabled": MigrationPolicy(False, False),
}
