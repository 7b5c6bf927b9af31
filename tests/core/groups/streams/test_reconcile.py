"""Reconciliation of one member: revocation first, and no two copies in one process."""

from __future__ import annotations

import msgspec

from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.reconcile import Owners, ReconcileInput, reconcile
from mockbroker.core.groups.streams.states import MemberState
from mockbroker.core.groups.streams.tasks import OwnedTasks, Tasks

MEMBER = StreamsMember(
    member_id="m", epoch=4, process_id="p", assigned=OwnedTasks({"0": {0: 2, 1: 3}})
)


def free(_: str, __: int) -> None:
    return None


def nobody(_: str, __: int) -> frozenset[str]:
    return frozenset()


NOBODY = Owners(free, nobody, nobody)


def active(*partitions: int) -> Tasks:
    return Tasks(active={"0": frozenset(partitions)})


def test_a_member_at_the_assignment_epoch_is_left_alone() -> None:
    assert reconcile(MEMBER, ReconcileInput(4, active(5), NOBODY, None)) is MEMBER


def test_kept_tasks_keep_their_epoch_and_new_ones_get_the_assignment_epoch() -> None:
    after = reconcile(MEMBER, ReconcileInput(6, active(0, 1, 2), NOBODY, None))
    assert after is not None
    assert after.assigned.active == {"0": {0: 2, 1: 3, 2: 6}}
    assert (after.epoch, after.previous_epoch, after.state) == (6, 4, MemberState.STABLE)


def test_a_member_revokes_at_its_old_epoch_before_it_gets_anything() -> None:
    after = reconcile(MEMBER, ReconcileInput(6, active(0, 2), NOBODY, active(0, 1)))
    assert after is not None
    assert after.assigned.active == {"0": {0: 2}}
    assert after.revoking.active == {"0": {1: 3}}
    assert (after.epoch, after.state) == (4, MemberState.UNREVOKED)
    assert reconcile(after, ReconcileInput(6, active(0, 2), NOBODY, active(0, 1))) is after
    assert reconcile(after, ReconcileInput(6, active(0, 2), NOBODY, None)) is after
    done = reconcile(after, ReconcileInput(6, active(0, 2), NOBODY, active(0)))
    assert done is not None
    assert done.assigned.active == {"0": {0: 2, 2: 6}}
    assert (done.epoch, done.state, bool(done.revoking)) == (6, MemberState.STABLE, False)


def test_a_member_that_must_revoke_once_more_moves_one_epoch_on() -> None:
    """As in Kafka, where the next revocation begins at the member epoch after its own."""
    waiting = msgspec.structs.replace(MEMBER, state=MemberState.UNREVOKED)
    after = reconcile(waiting, ReconcileInput(9, active(0), NOBODY, active(1)))
    assert after is not None
    assert (after.epoch, after.state) == (5, MemberState.UNREVOKED)


def test_an_active_task_of_another_process_is_waited_for() -> None:
    owners = Owners(lambda _, partition: "q" if partition == 2 else None, nobody, nobody)
    after = reconcile(MEMBER, ReconcileInput(6, active(0, 1, 2, 3), owners, None))
    assert after is not None
    assert after.assigned.active == {"0": {0: 2, 1: 3, 3: 6}}
    assert (after.epoch, after.state) == (6, MemberState.UNRELEASED)


def test_a_task_and_its_copy_are_never_in_one_process() -> None:
    own_standby = Owners(free, lambda _, __: frozenset({"p"}), nobody)
    after = reconcile(MEMBER, ReconcileInput(6, active(0, 1, 2), own_standby, None))
    assert after is not None
    assert after.state is MemberState.UNRELEASED
    target = Tasks(standby={"0": frozenset({3, 4})})
    mine = Owners(lambda _, partition: "p" if partition == 3 else "q", nobody, nobody)
    nothing = msgspec.structs.replace(MEMBER, assigned=OwnedTasks())
    copied = reconcile(nothing, ReconcileInput(6, target, mine, None))
    assert copied is not None
    assert copied.assigned.standby == {"0": frozenset({4})}


def test_a_member_in_an_unknown_state_must_own_nothing() -> None:
    unknown = msgspec.structs.replace(MEMBER, state=MemberState.UNKNOWN)
    assert reconcile(unknown, ReconcileInput(6, active(0), NOBODY, None)) is None
    assert reconcile(unknown, ReconcileInput(6, active(0), NOBODY, active(1))) is None
    after = reconcile(unknown, ReconcileInput(6, active(0), NOBODY, Tasks()))
    assert after is not None
    assert (after.epoch, after.state) == (6, MemberState.STABLE)
