r"""The states of a share group, of its members and of its share partitions (KIP-932).

A heartbeat has three steps, as in a consumer group (`groups.consumer.states`):

1. The *group epoch* rises if the member joins or changes its subscription, if the metadata of a
   subscribed topic has changed, or if initialized share partitions are not assigned yet.
2. If the group epoch is ahead of the *assignment epoch*, the assignor computes a new *target
   assignment*, at most once in an assignment interval.
3. A member behind the target moves to it at once. Nothing is revoked: a partition may have several
   members at any time. A member therefore has one state only.

Then the partitions of subscribed topics that have no share state are *initialized*: the group notes
them as initializing, and the share coordinator gets their state. A later heartbeat assigns them.

    (unknown) --Initialize--> initializing --Initialized--> initialized --DeleteOffsets--> deleting
                  ^              |    ^                          |                            |
                  +---Failed-----+    +----- Initialize ---------+        OffsetsDeleted: unknown

A share partition may be initializing and initialized at once, while an administrator alters its
start offset. `PARTITION_EVENTS` has the effect of each event. An initialization that is not
finished after `group.share.initialize.retry.interval.ms` is started again by the next heartbeat.

Source: ShareGroup, ShareGroupAssignmentBuilder, GroupMetadataManager.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from mockbroker_protocol import ErrorCode


class ShareGroupState(Enum):
    """States, with their names in ShareGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupFacts(NamedTuple):
    """The facts that decide a group's state."""

    deleted: bool  # its tombstones are in the log, or its coordinator has moved
    has_members: bool


# Total over the facts. A Dead group is removed from the shard's table.
GROUP_STATES: dict[GroupFacts, ShareGroupState] = {
    GroupFacts(deleted=False, has_members=False): ShareGroupState.EMPTY,
    GroupFacts(deleted=False, has_members=True): ShareGroupState.STABLE,
    GroupFacts(deleted=True, has_members=False): ShareGroupState.DEAD,
    GroupFacts(deleted=True, has_members=True): ShareGroupState.DEAD,
}

# DeleteGroups, DeleteShareGroupOffsets and AlterShareGroupOffsets: only of an Empty group.
EMPTY_ANSWERS: dict[ShareGroupState, ErrorCode] = {
    ShareGroupState.EMPTY: ErrorCode.NONE,
    ShareGroupState.STABLE: ErrorCode.NON_EMPTY_GROUP,
    ShareGroupState.DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
}

MEMBER_STABLE = 0  # the state in each record of a member (MemberState.STABLE)


class EpochRelation(Enum):
    """The epoch of a heartbeat, compared with the member's."""

    JOINS = "0: it joins or joins again"
    CURRENT = "the member epoch"
    PREVIOUS = "the previous member epoch, because the last answer may have been lost"
    SMALLER = "another smaller epoch"
    GREATER = "a greater epoch"


EPOCH_ANSWERS: dict[EpochRelation, ErrorCode] = {
    EpochRelation.JOINS: ErrorCode.NONE,
    EpochRelation.CURRENT: ErrorCode.NONE,
    EpochRelation.PREVIOUS: ErrorCode.NONE,
    EpochRelation.SMALLER: ErrorCode.FENCED_MEMBER_EPOCH,
    EpochRelation.GREATER: ErrorCode.FENCED_MEMBER_EPOCH,
}


class MemberAction(Enum):
    """The action of a reconciliation."""

    KEEP = "nothing"
    TRIM = "give it the target within its new subscription, at its epoch"
    ADVANCE = "give it the target, and the assignment epoch"


class MemberFacts(NamedTuple):
    """The facts that decide the action."""

    behind: bool  # its epoch is not the assignment epoch
    epoch_rises: bool  # this heartbeat raises the group epoch


MEMBER_ACTIONS: dict[MemberFacts, MemberAction] = {
    MemberFacts(behind=False, epoch_rises=False): MemberAction.KEEP,
    MemberFacts(behind=False, epoch_rises=True): MemberAction.TRIM,
    MemberFacts(behind=True, epoch_rises=False): MemberAction.ADVANCE,
    MemberFacts(behind=True, epoch_rises=True): MemberAction.ADVANCE,
}


class PartitionEvent(Enum):
    """What happens to share partitions of a group."""

    INITIALIZE = "a member subscribes, or AlterShareGroupOffsets sets a start offset"
    INITIALIZED = "the share coordinator has the state"
    FAILED = "the share coordinator has refused the state"
    DELETE_OFFSETS = "DeleteShareGroupOffsets of their topic"
    OFFSETS_DELETED = "the share coordinator has deleted the state of their topic"
    DELETE_GROUP = "DeleteGroups"
    TOPIC_DELETED = "their topic is deleted"


class SetChange(Enum):
    """What an event does to one of the three sets."""

    KEEP = "-"
    ADD = "add"
    REMOVE = "remove"


class PartitionEffects(NamedTuple):
    """The changes of the sets: initializing and initialized partitions, deleting topics."""

    initializing: SetChange
    initialized: SetChange
    deleting: SetChange


PARTITION_EVENTS: dict[PartitionEvent, PartitionEffects] = {
    PartitionEvent.INITIALIZE: PartitionEffects(SetChange.ADD, SetChange.KEEP, SetChange.REMOVE),
    PartitionEvent.INITIALIZED: PartitionEffects(SetChange.REMOVE, SetChange.ADD, SetChange.KEEP),
    PartitionEvent.FAILED: PartitionEffects(SetChange.REMOVE, SetChange.KEEP, SetChange.KEEP),
    PartitionEvent.DELETE_OFFSETS: PartitionEffects(
        SetChange.KEEP, SetChange.REMOVE, SetChange.ADD
    ),
    PartitionEvent.OFFSETS_DELETED: PartitionEffects(
        SetChange.KEEP, SetChange.KEEP, SetChange.REMOVE
    ),
    PartitionEvent.DELETE_GROUP: PartitionEffects(
        SetChange.REMOVE, SetChange.REMOVE, SetChange.ADD
    ),
    PartitionEvent.TOPIC_DELETED: PartitionEffects(
        SetChange.REMOVE, SetChange.REMOVE, SetChange.REMOVE
    ),
}
