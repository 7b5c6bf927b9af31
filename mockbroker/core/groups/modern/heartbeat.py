"""The steps of a heartbeat that all newer protocols have.

Source: GroupMetadataManager, TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.events import ConsumerResult
from mockbroker.core.groups.modern.events import (
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.modern.group import ModernGroup
from mockbroker.core.groups.modern.timers import SetTimer, TimerKind
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker_protocol import ErrorCode

M = TypeVar("M", bound=msgspec.Struct)
T = TypeVar("T")


def updated_member(member: M, sent: Mapping[str, object]) -> M:
    """The member with the fields of a heartbeat, of which None is "unchanged"; the same object if
    none changes.
    """
    changed = {
        name: value
        for name, value in sent.items()
        if value is not None and value != getattr(member, name)
    }
    return msgspec.structs.replace(member, **changed) if changed else member


def target_changes(
    group: ModernGroup[Any, Any, T, Any],
    members: Iterable[str],
    targets: Mapping[str, T],
    nothing: T,
    epoch: int,
    now_ms: int,
) -> list[StoredChange]:
    """The changes that store what an assignor has computed for `members` at an epoch."""
    changes: list[StoredChange] = [
        TargetAssignmentChange(member_id, targets.get(member_id, nothing))
        for member_id in hash_order(members, string_hash)
        if group.targets.get(member_id) != targets.get(member_id, nothing)
    ]
    changes.append(TargetEpochChange(epoch, now_ms))
    return changes


def session_timer(group: ModernGroup[Any, Any, Any, Any], member_id: str, now_ms: int) -> SetTimer:
    return SetTimer(TimerKind.SESSION, member_id, now_ms + group.settings.session_timeout_ms)


def rebalance_timer(group: ModernGroup[Any, Any, Any, Any], member: Any, now_ms: int) -> SetTimer:
    """Runs while the member has to revoke something."""
    if not group.must_revoke(member):
        return SetTimer(TimerKind.REBALANCE, member.member_id, None)
    due_ms = now_ms + member.rebalance_timeout_ms
    return SetTimer(TimerKind.REBALANCE, member.member_id, due_ms, member.epoch)


def in_unknown_state(noun: str, owned: str) -> ApiError:
    """The error of a member whose state comes from a later release."""
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {noun} group member is in a unknown state. The member must abandon all its {owned} "
        "and rejoin.",
    )


def heartbeat_result(
    group: ModernGroup[Any, Any, Any, Any], before: Any, after: Any, *, full: bool
) -> ConsumerResult:
    """The answer; it has the assignment only if it changed or the heartbeat is a full one."""
    shown = None
    if full or after.assigned != before.assigned:
        shown = {topic_id: tuple(sorted(ps)) for topic_id, ps in after.assigned.items()}
    return ConsumerResult(
        member_id=after.member_id,
        epoch=after.epoch,
        heartbeat_interval_ms=group.settings.heartbeat_interval_ms,
        assignment=shown,
    )
