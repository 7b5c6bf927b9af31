"""Reconciliation of one member with its target assignment. Source: CurrentAssignmentBuilder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.states import (
    ADVANCE_RESULTS,
    RECONCILE_ACTIONS,
    AdvanceFacts,
    MemberState,
    ReconcileAction,
)
from mockbroker.core.groups.streams.tasks import (
    NOTHING_OWNED,
    OwnedTasks,
    Tasks,
    TaskSets,
    owns_any,
)

IsTaken = Callable[[str, int], bool]


class Owners(NamedTuple):
    """The owners of a task: (subtopology, partition) -> process ids, by kind."""

    active: Callable[[str, int], str | None]
    standby: Callable[[str, int], frozenset[str]]
    warmup: Callable[[str, int], frozenset[str]]


class ReconcileInput(NamedTuple):
    """The target of a reconciliation; `reported` are the owned tasks that the heartbeat lists."""

    epoch: int
    target: Tasks
    owners: Owners
    reported: Tasks | None


class _Difference(NamedTuple):
    """The tasks of one kind: kept, to revoke, free to assign; and whether some are taken."""

    kept: TaskSets
    lost: TaskSets
    free: TaskSets
    must_wait: bool


def reconcile(member: StreamsMember, inputs: ReconcileInput) -> StreamsMember | None:
    """The reconciled member; the same object if nothing changes, None if it must be fenced."""
    step = RECONCILE_ACTIONS[member.state][_is_due(member, inputs)]
    if step is ReconcileAction.KEEP:
        return member
    if step is ReconcileAction.FENCE:
        return None
    epoch = member.epoch
    if step is ReconcileAction.ADVANCE_NEXT:
        epoch += 1
    elif step is ReconcileAction.ADVANCE_TARGET:
        epoch = inputs.epoch
    return _advance(member, inputs, epoch)


def _is_due(member: StreamsMember, inputs: ReconcileInput) -> bool:
    reported = inputs.reported
    if member.state is MemberState.STABLE:
        return member.epoch != inputs.epoch
    if member.state is MemberState.UNREVOKED:
        return reported is not None and not owns_any(reported, member.revoking)
    if member.state is MemberState.UNKNOWN:
        return reported is not None and not reported
    return True


def _advance(member: StreamsMember, inputs: ReconcileInput, revoking_epoch: int) -> StreamsMember:
    owners, target, mine = inputs.owners, inputs.target, member.process_id

    def has_copy(subtopology: str, partition: int) -> bool:
        return mine in owners.standby(subtopology, partition) or mine in owners.warmup(
            subtopology, partition
        )

    def taken_for_active(subtopology: str, partition: int) -> bool:
        return owners.active(subtopology, partition) is not None or has_copy(subtopology, partition)

    def taken_for_copy(subtopology: str, partition: int) -> bool:
        return owners.active(subtopology, partition) == mine or has_copy(subtopology, partition)

    owned = member.assigned
    active = _difference(
        {each: frozenset(epochs) for each, epochs in owned.active.items()},
        target.active,
        taken_for_active,
    )
    standby = _difference(owned.standby, target.standby, taken_for_copy)
    warmup = _difference(owned.warmup, target.warmup, taken_for_copy)
    kept = OwnedTasks(_with_epochs(owned.active, active.kept), standby.kept, warmup.kept)
    lost = OwnedTasks(_with_epochs(owned.active, active.lost), standby.lost, warmup.lost)
    outcome = ADVANCE_RESULTS[
        AdvanceFacts(
            bool(lost) and (inputs.reported is None or owns_any(inputs.reported, lost)),
            active.must_wait or standby.must_wait or warmup.must_wait,
        )
    ]
    if outcome.takes_target_epoch:
        free = {each: dict.fromkeys(sorted(ps), inputs.epoch) for each, ps in active.free.items()}
        kept = kept.merged(OwnedTasks(free, standby.free, warmup.free))
    return msgspec.structs.replace(
        member,
        state=outcome.state,
        epoch=inputs.epoch if outcome.takes_target_epoch else revoking_epoch,
        previous_epoch=member.epoch,
        assigned=kept,
        revoking=NOTHING_OWNED if outcome.takes_target_epoch else lost,
    )


def _difference(current: TaskSets, target: TaskSets, is_taken: IsTaken) -> _Difference:
    kept: dict[str, frozenset[int]] = {}
    lost: dict[str, frozenset[int]] = {}
    free: dict[str, frozenset[int]] = {}
    must_wait = False
    for subtopology in {**target, **current}:
        mine = current.get(subtopology, frozenset())
        wanted = target.get(subtopology, frozenset())
        new = wanted - mine
        available = frozenset(each for each in new if not is_taken(subtopology, each))
        must_wait = must_wait or available != new
        for result, partitions in ((kept, mine & wanted), (lost, mine - wanted), (free, available)):
            if partitions:
                result[subtopology] = partitions
    return _Difference(kept, lost, free, must_wait)


def _with_epochs(
    owned: Mapping[str, Mapping[int, int]], tasks: TaskSets
) -> dict[str, dict[int, int]]:
    """The part `tasks` of `owned`."""
    return {
        subtopology: {each: owned[subtopology][each] for each in sorted(partitions)}
        for subtopology, partitions in tasks.items()
    }
