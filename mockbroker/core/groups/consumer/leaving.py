"""Members that leave a consumer group or are fenced.

A removal raises the group epoch. If all remaining members are classic ones, the group may be
downgraded (KIP-848, online migration).

Source: GroupMetadataManager, consumerGroupLeave, consumerGroupFenceMembers.
"""

from __future__ import annotations

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.consumer.events import ConsumerLeave, Downgrade, RegexChange
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.heartbeat import dynamic_member, known_static_member
from mockbroker.core.groups.events import ConsumerResult, Reply
from mockbroker.core.groups.modern.events import (
    STATIC_LEAVE_EPOCH,
    GroupChange,
    Store,
    StoredChange,
    current_assignment_change,
    removal,
)
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.groups.modern.topics import metadata_hash


def fence_members(
    group: ConsumerGroup, gone: frozenset[str], answer: Reply | None, retry: SetTimer | None = None
) -> None:
    """Remove members: the group epoch rises, or the group is downgraded."""
    if may_downgrade(group, gone):
        group.effects.append(
            Downgrade(
                leaving=gone,
                rebalance="the last member of the new protocol has left",
                answer=answer,
                retry=retry,
            )
        )
        return
    changes: list[StoredChange] = []
    timers: list[SetTimer] = []
    for member_id in gone:
        changes += removal(member_id)
        timers += (SetTimer(kind, member_id, None) for kind in TimerKind)
    staying = [m for m in group.members.values() if m.member_id not in gone]
    regexes = {m.regex for m in staying}
    for regex in group.resolved:
        if regex not in regexes:
            changes.append(RegexChange(regex, None))
    names = {name for m in staying for name in m.topic_names}
    for regex, resolved in group.resolved.items():
        if regex in regexes:
            names |= resolved.topics
    changes.append(GroupChange(group.epoch + 1, metadata_hash(group.topics, names)))
    group.effects.append(
        Store(changes=tuple(changes), answer=answer, timers=tuple(timers), retry=retry)
    )


def may_downgrade(group: ConsumerGroup, gone: frozenset[str], joining: int = 0) -> bool:
    """Whether all remaining members are classic ones, and policy and size allow a downgrade.

    `joining` counts a classic member that replaces one in `gone`.
    """
    staying = len(group.members) - len(gone)
    classic_gone = sum(group.members[m].classic is not None for m in gone)
    if group.classic_count - classic_gone != staying or staying + joining == 0:
        return False
    if joining and classic_gone:
        return False
    if not group.settings.migration.downgrade:
        return False
    return staying + joining <= group.settings.classic_size_max


def on_consumer_leave(group: ConsumerGroup, leave: ConsumerLeave, _: int) -> None:
    result = ConsumerResult(member_id=leave.member_id, epoch=leave.epoch)
    try:
        if leave.instance_id is None:
            member = dynamic_member(group, leave.member_id, create=False)
        else:
            member = known_static_member(group, leave.member_id, leave.instance_id)
    except ApiError as error:
        result = ConsumerResult(error=error.error, message=error.message)
        group.effects.append(Reply(leave.callback, result))
        return
    answer = Reply(leave.callback, result)
    if leave.instance_id is None or leave.epoch != STATIC_LEAVE_EPOCH:
        fence_members(group, frozenset({member.member_id}), answer)
        return
    # It keeps its partitions at epoch 0, so that the returning member may commit.
    former = msgspec.structs.replace(
        member,
        epoch=STATIC_LEAVE_EPOCH,
        assigned={t: dict.fromkeys(ps, 0) for t, ps in member.assigned.items()},
        revoking={},
    )
    group.effects.append(Store(changes=(current_assignment_change(former),), answer=answer))
