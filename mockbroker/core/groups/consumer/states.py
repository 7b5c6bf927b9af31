r"""The states of a consumer group and of its members (KIP-848).

A heartbeat has three steps. Each may raise an epoch:

1. The *group epoch* rises if the member joins or changes its subscription, or if the metadata of a
   subscribed topic has changed since the last comparison.
2. If the group epoch is ahead of the *assignment epoch*, the assignor computes a new *target
   assignment*, and the assignment epoch becomes the group epoch. This happens at most once in an
   assignment interval.
3. A member behind the target is *reconciled*. At its old *member epoch* it revokes the partitions
   that are not in its target. Then it moves to the assignment epoch and gets the free partitions.
   It gets the partitions that other members have yet to revoke with later heartbeats.

A slow member therefore delays only the members that wait for its partitions. A partition is not
assigned to another member before its owner has reported the revocation by not listing it.

    member:   Stable --(must revoke)--> UnrevokedPartitions --(has revoked)-----+
                ^  \                                                            |
                |   +--(must wait)--> UnreleasedPartitions                      |
                |                              |                                |
                +------------------------------+--------------------------------+

The state of a group follows from its epochs and the states of its members (`GROUP_STATES`). Only
`reconcile` writes the state of a member, by `ADVANCE_RESULTS`.

Source: ConsumerGroup, CurrentAssignmentBuilder, MemberState.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

from mockbroker_protocol import ErrorCode


class ConsumerGroupState(Enum):
    """States, with their names in ConsumerGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupFacts(NamedTuple):
    """The facts that decide a group's state."""

    has_members: bool
    assigned: bool  # the assignment epoch has caught up with the group epoch
    reconciled: bool  # every member is Stable at the assignment epoch


# Total over the facts. A Dead group is removed from the shard's table.
GROUP_STATES: dict[GroupFacts, ConsumerGroupState] = {
    GroupFacts(False, False, False): ConsumerGroupState.EMPTY,
    GroupFacts(False, False, True): ConsumerGroupState.EMPTY,
    GroupFacts(False, True, False): ConsumerGroupState.EMPTY,
    GroupFacts(False, True, True): ConsumerGroupState.EMPTY,
    GroupFacts(True, False, False): ConsumerGroupState.ASSIGNING,
    GroupFacts(True, False, True): ConsumerGroupState.ASSIGNING,
    GroupFacts(True, True, False): ConsumerGroupState.RECONCILING,
    GroupFacts(True, True, True): ConsumerGroupState.STABLE,
}

# DeleteGroups: only an Empty group may be deleted.
DELETE_ANSWERS: dict[ConsumerGroupState, ErrorCode] = {
    ConsumerGroupState.EMPTY: ErrorCode.NONE,
    ConsumerGroupState.ASSIGNING: ErrorCode.NON_EMPTY_GROUP,
    ConsumerGroupState.RECONCILING: ErrorCode.NON_EMPTY_GROUP,
    ConsumerGroupState.STABLE: ErrorCode.NON_EMPTY_GROUP,
    ConsumerGroupState.DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
}


class MemberState(IntEnum):
    """The progress of a member towards its target assignment. The values are those in the log."""

    STABLE = 0
    UNREVOKED = 1  # it has partitions to revoke
    UNRELEASED = 2  # it waits for partitions that other members have to revoke
    UNKNOWN = 127  # written by a later release


class ReconcileAction(Enum):
    """The action of a reconciliation."""

    KEEP = "nothing"
    TRIM = "revoke the topics to which it no longer subscribes, at its current epoch"
    ADVANCE = "move it towards the target assignment"
    FENCE = "fence it, so that it joins again without partitions"


class ReconcileFacts(NamedTuple):
    """The facts that decide the action, with the member's state."""

    due: bool  # see DUE
    resubscribed: bool  # this heartbeat changed the subscription


# When a member in a state is due to advance.
DUE: dict[MemberState, str] = {
    MemberState.STABLE: "its epoch is not the assignment epoch",
    MemberState.UNREVOKED: "it no longer owns a partition that it has to revoke",
    MemberState.UNRELEASED: "always, because the partitions may have become free",
    MemberState.UNKNOWN: "it owns no partition",
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
        # This state is always due.
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
    """The facts that decide the member's next state."""

    must_revoke: bool
    must_wait: bool


class AdvanceResult(NamedTuple):
    state: MemberState
    takes_target_epoch: bool


ADVANCE_RESULTS: dict[AdvanceFacts, AdvanceResult] = {
    AdvanceFacts(False, False): AdvanceResult(MemberState.STABLE, True),
    AdvanceFacts(False, True): AdvanceResult(MemberState.UNRELEASED, True),
    # A member keeps its epoch and gets no partition before it has revoked the others.
    AdvanceFacts(True, False): AdvanceResult(MemberState.UNREVOKED, False),
    AdvanceFacts(True, True): AdvanceResult(MemberState.UNREVOKED, False),
}


class MigrationPolicy(NamedTuple):
    """Whether a group with members may be upgraded and downgraded."""

    upgrade: bool
    downgrade: bool


# By the values of group.consumer.migration.policy. With `disabled`, classic members cannot join a
# consumer group.
MIGRATION_POLICIES: dict[str, MigrationPolicy] = {
    "bidirectional": MigrationPolicy(True, True),
    "upgrade": MigrationPolicy(True, False),
    "downgrade": MigrationPolicy(False, True),
    "disabled": MigrationPolicy(False, False),
}
