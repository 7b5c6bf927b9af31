"""The uniform assignor: as even as it gets, and with as few moves as it takes.

Two algorithms. If all members subscribe to the same topics, each has a quota (some one more than
others): what exceeds it is taken away, what is free fills up whoever is below. Otherwise see
`assignors.uneven`.

Source: UniformAssignor and UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from mockbroker.core.groups.assignors.base import (
    AssignorGroup,
    Target,
    member_order,
    partition_order,
    topic_order,
)
from mockbroker.core.groups.assignors.uneven import assign_uneven


def assign_uniform(group: AssignorGroup) -> dict[str, Target]:
    """New targets; empty when nobody subscribes to a topic that exists."""
    if not group.members:
        return {}
    return _assign_even(group) if group.uniform else assign_uneven(group)


def _assign_even(group: AssignorGroup) -> dict[str, Target]:
    order = member_order(group)
    topics = topic_order(group.members[order[0]].topics)
    if not topics:
        return {}
    total = sum(group.partitions[topic_id] for topic_id in topics)
    least, extra = divmod(total, len(order))
    targets: dict[str, dict[bytes, set[int]]] = {}
    unfilled: list[tuple[str, int]] = []
    free = _never_assigned(group, topics)
    for index, member_id in enumerate(order):
        quota = least + (extra > 0)
        targets[member_id], surplus, room = _keep(group, member_id, set(topics), quota)
        free += surplus
        has_extra = extra > 0
        if room and has_extra and len(order) - index > extra:
            # Others may make better use of the extra partition: they may have it already.
            room -= 1
            has_extra = False
        if room:
            unfilled.append((member_id, room))
        extra -= has_extra
    queue = iter(free)
    for member_id, room in unfilled:
        for _, (topic_id, partition) in zip(range(room), queue, strict=False):
            targets[member_id].setdefault(topic_id, set()).add(partition)
    return {
        member_id: {topic_id: frozenset(ps) for topic_id, ps in target.items()}
        for member_id, target in targets.items()
    }


def _never_assigned(group: AssignorGroup, topics: list[bytes]) -> list[tuple[bytes, int]]:
    taken = {
        (topic_id, partition)
        for member in group.members.values()
        for topic_id, partitions in member.target.items()
        for partition in partitions
    }
    return [
        (topic_id, partition)
        for topic_id in topics
        for partition in range(group.partitions[topic_id])
        if (topic_id, partition) not in taken
    ]


def _keep(
    group: AssignorGroup, member_id: str, topics: set[bytes], quota: int
) -> tuple[dict[bytes, set[int]], list[tuple[bytes, int]], int]:
    """What a member keeps of its target, what it has to give up, and how much it lacks."""
    kept: dict[bytes, set[int]] = {}
    surplus: list[tuple[bytes, int]] = []
    target = group.members[member_id].target
    for topic_id in topic_order(target):
        if topic_id not in topics:
            continue
        for partition in partition_order(target[topic_id]):
            if quota > 0:
                quota -= 1
                kept.setdefault(topic_id, set()).add(partition)
            else:
                surplus.append((topic_id, partition))
    return kept, surplus, quota
