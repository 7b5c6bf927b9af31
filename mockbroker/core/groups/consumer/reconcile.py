"""One step of one member towards the target assignment. Source: CurrentAssignmentBuilder."""

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
    OUTCOMES,
    STEPS,
    Advance,
    MemberState,
    Situation,
    Step,
)


class Plan(msgspec.Struct, frozen=True):
    """What a member is reconciled with.

    `subscribed` are the ids of the topics it subscribes to, `owner_epoch` tells at which epoch a
    partition is owned by anybody (-1: it is free), `reported` is what the client says it owns.
    """

    epoch: int
    target: Target
    subscribed: AbstractSet[bytes]
    owner_epoch: Callable[[bytes, int], int]
    reported: Reported
    resubscribed: bool = False


def reconcile(member: ConsumerMember, plan: Plan) -> ConsumerMember | None:
    """The member after the step; the same object if nothing changes, None if it is to be fenced."""
    step = STEPS[member.state][Situation(_is_due(member, plan), plan.resubscribed)]
    if step is Step.KEEP:
        return member
    if step is Step.FENCE:
        return None
    return _trim(member, plan) if step is Step.TRIM else _advance(member, plan)


def _is_due(member: ConsumerMember, plan: Plan) -> bool:
    if member.state is MemberState.STABLE:
        return member.epoch != plan.epoch
    if member.state is MemberState.UNREVOKED:
        return not owns_any(plan.reported, member.revoking)
    if member.state is MemberState.UNKNOWN:
        return plan.reported is not None and not any(plan.reported.values())
    return True


def _trim(member: ConsumerMember, plan: Plan) -> ConsumerMember:
    """Take away topics that the member no longer subscribes to, without waiting for a target."""
    dropped = {t: ps for t, ps in member.assigned.items() if t not in plan.subscribed}
    if not dropped:
        return member
    kept = {t: ps for t, ps in member.assigned.items() if t in plan.subscribed}
    revoking: dict[bytes, dict[int, int]] = {t: dict(ps) for t, ps in member.revoking.items()}
    for topic_id, partitions in dropped.items():
        revoking.setdefault(topic_id, {}).update(partitions)
    moved = _at_epoch(member, member.epoch)
    if owns_any(plan.reported, revoking):
        return msgspec.structs.replace(
            moved, state=MemberState.UNREVOKED, assigned=kept, revoking=revoking
        )
    return msgspec.structs.replace(moved, assigned=kept)


def _advance(member: ConsumerMember, plan: Plan) -> ConsumerMember:
    kept: dict[bytes, dict[int, int]] = {}
    lost: dict[bytes, dict[int, int]] = {}
    free: dict[bytes, list[int]] = {}
    must_wait = False
    for topic_id in {**plan.target, **member.assigned}:
        # A target that was made before the member changed its subscription does not count.
        subscribed = topic_id in plan.subscribed
        target = plan.target.get(topic_id, frozenset()) if subscribed else frozenset()
        mine = member.assigned.get(topic_id, {})
        _put(kept, topic_id, {p: epoch for p, epoch in mine.items() if p in target})
        _put(lost, topic_id, {p: epoch for p, epoch in mine.items() if p not in target})
        for partition in sorted(target.difference(mine)):
            if _is_free(member, plan, topic_id, partition):
                free.setdefault(topic_id, []).append(partition)
            else:
                must_wait = True
    must_revoke = bool(lost) and owns_any(plan.reported, lost)
    outcome = OUTCOMES[Advance(must_revoke, must_wait)]
    if outcome.takes_target_epoch:
        for topic_id, partitions in free.items():
            kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, plan.epoch))
        lost = {}
    moved = _at_epoch(member, plan.epoch if outcome.takes_target_epoch else member.epoch)
    return msgspec.structs.replace(moved, state=outcome.state, assigned=kept, revoking=lost)


def _is_free(member: ConsumerMember, plan: Plan, topic_id: bytes, partition: int) -> bool:
    """Nobody owns it; or the member itself does, which was about to give it up."""
    return plan.owner_epoch(topic_id, partition) == NO_EPOCH or partition in member.revoking.get(
        topic_id, {}
    )


def _at_epoch(member: ConsumerMember, epoch: int) -> ConsumerMember:
    return msgspec.structs.replace(member, epoch=epoch, previous_epoch=member.epoch)


def _put(owned: dict[bytes, dict[int, int]], topic_id: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        owned[topic_id] = partitions
