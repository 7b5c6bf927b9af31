"""The uniform assignor: balanced, with as few moves as possible.

If all members subscribe to the same topics, each has a quota; quotas differ by at most one. A
member loses the partitions above its quota, and unassigned partitions go to members below theirs.
Otherwise see `assignors.uniform_heterogeneous`.

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
from mockbroker.core.groups.assignors.uniform_heterogeneous import assign_heterogeneous


def assign_uniform(group: AssignorGroup) -> dict[str, Target]:
    """New targets; empty if no member subscribes to a topic that exists."""
    if not group.members:
        return {}
    return _assign_homogeneous(group) if group.uniform else assign_heterogeneous(group)


def _assign_homogeneous(group: AssignorGroup) -> dict[str, Target]:
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
            # Leave the extra partition to a later member, which may own it already.
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
    """The partitions that a member keeps, those it loses, and how many it lacks to its quota."""
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
