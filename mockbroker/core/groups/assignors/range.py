"""The range assignor: each member gets a contiguous range of each topic.

Topics with equal partition counts are co-partitioned. Static members come first, by instance id, so
that they keep their ranges when they return with another member id. Current targets have no effect.
Source: RangeAssignor.
"""

from __future__ import annotations

from mockbroker.core.groups.assignors.base import AssignorGroup, Target


def assign_range(group: AssignorGroup) -> dict[str, Target]:
    """New targets. Ids are sorted by code points; Java's order differs beyond U+FFFF only."""
    members = group.members

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    subscribers: dict[bytes, list[str]] = {}
    targets: dict[str, dict[bytes, frozenset[int]]] = {}
    for member_id in sorted(members, key=rank):
        targets[member_id] = {}
        for topic_id in sorted(members[member_id].topics):
            subscribers.setdefault(topic_id, []).append(member_id)
    for topic_id, member_ids in subscribers.items():
        least, extra = divmod(group.partitions[topic_id], len(member_ids))
        start = 0
        for index, member_id in enumerate(member_ids):
            end = start + least + (index < extra)
            if end > start:
                targets[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(targets)
