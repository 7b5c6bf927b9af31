"""The events of a consumer group and their handlers; `states` has the theory.

Four timers run for a member: its session, re-armed by each heartbeat; a rebalance timer while it
has partitions to revoke; and, for a member of the classic protocol, a join timer and a sync timer.

Source: GroupMetadataManager.
"""

from __future__ import annotations

from mockbroker.core.groups.consumer.classic import on_heartbeat, on_join, on_leave, on_sync
from mockbroker.core.groups.consumer.events import (
    ConsumerHeartbeat,
    ConsumerLeave,
    Effect,
    RegexesResolved,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.heartbeat import on_consumer_heartbeat, on_regexes_resolved
from mockbroker.core.groups.consumer.leaving import fence_members, on_consumer_leave
from mockbroker.core.groups.events import Delete, Heartbeat, Join, Leave, Sync
from mockbroker.core.groups.modern.events import Store
from mockbroker.core.groups.modern.machine import Handlers, common_handlers, run
from mockbroker.core.groups.modern.timers import SetTimer


def handle(group: ConsumerGroup, event: object, now_ms: int) -> list[Effect]:
    """Handle one event; returns the effects in order."""
    return run(group, _HANDLERS, event, now_ms)


def _fence(group: ConsumerGroup, member_id: str, retry: SetTimer) -> None:
    fence_members(group, frozenset({member_id}), None, retry)


def _on_delete(group: ConsumerGroup, _: Delete, __: int) -> None:
    assert group.is_empty()
    group.effects.append(Store(changes=group.tombstones()))


_HANDLERS: Handlers[ConsumerGroup] = {
    **common_handlers(_fence),
    ConsumerHeartbeat: on_consumer_heartbeat,
    ConsumerLeave: on_consumer_leave,
    RegexesResolved: on_regexes_resolved,
    Join: on_join,
    Sync: on_sync,
    Heartbeat: on_heartbeat,
    Leave: on_leave,
    Delete: _on_delete,
}
