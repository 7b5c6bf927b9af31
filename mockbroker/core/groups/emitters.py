"""Emit the events of groups: a state transition, a committed offset, a removed offset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockbroker.core.events import GroupLoaded, GroupMoved, OffsetCommitted, OffsetRemoved

if TYPE_CHECKING:
    from mockbroker.core.groups.group import Group
    from mockbroker.core.groups.offsets import OffsetAndMetadata
    from mockbroker.core.runtime import Runtime


def emit_moved(
    runtime: Runtime,
    node_id: int,
    group: Group,
    former: str,
    state: str,
    generation: int,
    reason: str = "",
) -> None:
    """A group has a new state or a new epoch at the coordinator `node_id`. The group may already be
    in a later state.
    """
    if runtime.on_event:
        runtime.emit(
            GroupMoved(
                runtime.now_ms(),
                node_id,
                group.group_id,
                former,
                state,
                generation,
                len(group.members),
                reason,
                group.group_type,
            )
        )


def emit_loaded(runtime: Runtime, node_id: int, group: Group) -> None:
    """A group was loaded at the coordinator `node_id`."""
    if runtime.on_event:
        runtime.emit(
            GroupLoaded(
                runtime.now_ms(),
                node_id,
                group.group_id,
                group.state_name,
                group.generation_or_epoch,
                len(group.members),
                group.group_type,
            )
        )


def emit_committed(
    runtime: Runtime,
    now_ms: int,
    node_id: int,
    group_id: str,
    commits: Iterable[tuple[str, int, OffsetAndMetadata]],
    request_seq: int,
    *,
    transactional: bool,
) -> None:
    """Offsets of a group were written at coordinator `node_id`: (topic, partition, offset)."""
    if not runtime.on_event:
        return
    for topic, partition, value in commits:
        runtime.emit(
            OffsetCommitted(
                now_ms,
                node_id,
                request_seq,
                group_id,
                topic,
                partition,
                value.offset,
                transactional,
            )
        )


def emit_offsets_removed(
    runtime: Runtime, node_id: int, keys: Iterable[tuple[str, str, int]], reason: str
) -> None:
    """Tombstones of (group, topic, partition) were written; `reason` is one of `OffsetRemoved`."""
    if not runtime.on_event:
        return
    now_ms = runtime.now_ms()
    for group_id, topic, partition in keys:
        runtime.emit(OffsetRemoved(now_ms, node_id, group_id, topic, partition, reason))
