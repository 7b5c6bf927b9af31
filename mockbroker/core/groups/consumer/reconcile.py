"""Reconciliation of one member with the target assignment. Source: CurrentAssignmentBuilder."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

import msgspec

from mockbroker.core.groups.consumer.members import (
    NO_EPOCH,
    ConsumerMember,
    Reported,
    Target,
    owns_any,
)
from mockbroker.core.groups.consumer.states import (
    ADVANCE_RESULTS,
    RECONCILE_ACTIONS,
    AdvanceFacts,
    MemberState,
    ReconcileAction,
    ReconcileFacts,
)


class ReconcileInput(msgspec.Struct, frozen=True):
    """The target of a reconciliation and the facts it depends on.

    `subscribed`: the ids of the topics that the member subscribes to. `current_partition_epoch`
    returns the epoch at which any member owns a partition, -1 if it is free. `reported`: the
    partitions that the heartbeat lists as owned.
    """

    epoch: int
    target: Target
    subscribed: AbstractSet[bytes]
    current_partition_epoch: Callable[[bytes, int], int]
    reported: Reported
    resubscribed: bool = False


def reconcile(member: ConsumerMember, inputs: ReconcileInput) -> ConsumerMember | None:
    """The reconciled member; the same object if nothing changes, None if it must be fenced."""
    step = RECONCILE_ACTIONS[member.state][
        ReconcileFacts(_is_due(member, inputs), inputs.resubscribed)
    ]
    if step is ReconcileAction.KEEP:
        return member
    if step is ReconcileAction.FENCE:
        return None
    return _trim(member, inputs) if step is ReconcileAction.TRIM else _advance(member, inputs)


def _is_due(member: ConsumerMember, inputs: ReconcileInput) -> bool:
    if member.state is MemberState.STABLE:
        return member.epoch != inputs.epoch
    if member.state is MemberState.UNREVOKED:
        return not owns_any(inputs.reported, member.revoking)
    if member.state is MemberState.UNKNOWN:
        return inputs.reported is not None and not any(inputs.reported.values())
    return True


def _trim(member: ConsumerMember, inputs: ReconcileInput) -> ConsumerMember:
    """Revoke the topics that the member no longer subscribes to, ahead of a new target."""
    dropped = {t: ps for t, ps in member.assigned.items() if t not in inputs.subscribed}
    if not dropped:
        return member
    kept = {t: ps for t, ps in member.assigned.items() if t in inputs.subscribed}
    revoking: dict[bytes, dict[int, int]] = {t: dict(ps) for t, ps in member.revoking.items()}
    for topic_id, partitions in dropped.items():
        revoking.setdefault(topic_id, {}).update(partitions)
    moved = _at_epoch(member, member.epoch)
    if owns_any(inputs.reported, revoking):
        return msgspec.structs.replace(
            moved, state=MemberState.UNREVOKED, assigned=kept, revoking=revoking
        )
    return msgspec.structs.replace(moved, assigned=kept)


def _advance(member: ConsumerMember, inputs: ReconcileInput) -> ConsumerMember:
    kept: dict[bytes, dict[int, int]] = {}
    lost: dict[bytes, dict[int, int]] = {}
    free: dict[bytes, list[int]] = {}
    must_wait = False
    for topic_id in {**inputs.target, **member.assigned}:
        # The target may be older than the member's present subscription.
        subscribed = topic_id in inputs.subscribed
        target = inputs.target.get(topic_id, frozenset()) if subscribed else frozenset()
        mine = member.assigned.get(topic_id, {})
        _put(kept, topic_id, {p: epoch for p, epoch in mine.items() if p in target})
        _put(lost, topic_id, {p: epoch for p, epoch in mine.items() if p not in target})
        for partition in sorted(target.difference(mine)):
            if _is_free(member, inputs, topic_id, partition):
                free.setdefault(topic_id, []).append(partition)
            else:
                must_wait = True
    must_revoke = bool(lost) and owns_any(inputs.reported, lost)
    outcome = ADVANCE_RESULTS[AdvanceFacts(must_revoke, must_wait)]
    if outcome.takes_target_epoch:
        for topic_id, partitions in free.items():
            kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, inputs.epoch))
        lost = {}
    moved = _at_epoch(member, inputs.epoch if outcome.takes_target_epoch else member.epoch)
    return msgspec.structs.replace(moved, state=outcome.state, assigned=kept, revoking=lost)


def _is_free(
    member: ConsumerMember, inputs: ReconcileInput, topic_id: bytes, partition: int
) -> bool:
    """Whether no member owns the partition, or only this member, pending revocation."""
    owner_epoch = inputs.current_partition_epoch(topic_id, partition)
    return owner_epoch == NO_EPOCH or partition in member.revoking.get(topic_id, {})


def _at_epoch(member: ConsumerMember, epoch: int) -> ConsumerMember:
    return msgspec.structs.replace(member, epoch=epoch, previous_epoch=member.epoch)


def _put(owned: dict[bytes, dict[int, int]], topic_id: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        owned[topic_id] = partitions
