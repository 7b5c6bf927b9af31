"""The range assignor: each topic in contiguous ranges over its members, who are in one order.

Topics of equally many partitions end up co-partitioned. Static members come first, by instance id,
so that they keep their ranges when they come back under another member id. The present targets are
not looked at. Source: RangeAssignor.
"""

from __future__ import annotations

from mockbroker.core.groups.assignors.base import AssignorGroup, Target


def assign_range(group: AssignorGroup) -> dict[str, Target]:
    """New targets. Java compares strings by UTF-16 units; ids differ from that order nowhere that
    matters.
    """
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
