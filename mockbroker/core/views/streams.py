"""The tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.views.groups import group_shards

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.streams.group import StreamsGroup
    from mockbroker.core.groups.streams.members import StreamsMember

Tasks = Mapping[str, Iterable[int]]


class StreamsTaskView(msgspec.Struct, frozen=True):
    """A task, and a member that has it, gives it back, or will get it.

    `kind` is "active", "standby" or "warmup". `state` is "assigned", "revoking" or "target": the
    member's target assignment has the task, and the member does not have it yet.
    """

    group: str
    subtopology: str
    partition: int
    kind: str
    state: str
    member_id: str
    process_id: str
    client_id: str


def streams_task_views(cluster: Cluster, group: str | None = None) -> list[StreamsTaskView]:
    """The tasks of all streams groups, or of one, by group, subtopology and partition."""
    found = [
        view
        for shard in group_shards(cluster)
        for each in shard.streams.all().values()
        if group in (None, each.group_id)
        for view in _tasks(each)
    ]
    return sorted(
        found, key=lambda v: (v.group, v.subtopology, v.partition, v.kind, v.state, v.member_id)
    )


def _tasks(group: StreamsGroup) -> Iterator[StreamsTaskView]:
    for member in group.members.values():
        target = group.target_of(member.member_id)
        for kind in ("active", "standby", "warmup"):
            assigned: Tasks = getattr(member.assigned, kind)
            revoking: Tasks = getattr(member.revoking, kind)
            wanted: Tasks = getattr(target, kind)
            yield from _views(group, member, kind, "assigned", assigned)
            yield from _views(group, member, kind, "revoking", revoking)
            missing = {each: set(ps) - set(assigned.get(each, ())) for each, ps in wanted.items()}
            yield from _views(group, member, kind, "target", missing)


def _views(
    group: StreamsGroup, member: StreamsMember, kind: str, state: str, tasks: Tasks
) -> Iterator[StreamsTaskView]:
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            yield StreamsTaskView(
                group.group_id,
                subtopology,
                partition,
                kind,
                state,
                member.member_id,
                member.process_id,
                member.client_id,
            )
