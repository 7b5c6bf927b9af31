"""The processes that own each task."""

from __future__ import annotations

from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.owners import TaskOwners
from mockbroker.core.groups.streams.tasks import OwnedTasks


def member(process: str, assigned: OwnedTasks, revoking: OwnedTasks | None = None) -> StreamsMember:
    return StreamsMember(
        member_id=process,
        process_id=process,
        assigned=assigned,
        revoking=revoking or OwnedTasks(),
    )


def test_a_task_pending_revocation_still_has_its_owner() -> None:
    owners = TaskOwners()
    owners.add(member("p", OwnedTasks({"0": {0: 1}}), OwnedTasks({"0": {1: 1}})))
    lookups = owners.lookups()
    assert [lookups.active("0", each) for each in range(3)] == ["p", "p", None]


def test_copies_may_have_several_owners() -> None:
    owners = TaskOwners()
    one, two = (member(each, OwnedTasks(standby={"0": frozenset({0})})) for each in "pq")
    owners.add(one)
    owners.add(two)
    assert owners.lookups().standby("0", 0) == {"p", "q"}
    owners.remove(one)
    owners.remove(two)
    assert owners.lookups().standby("0", 0) == frozenset()


def test_a_later_owner_of_an_active_task_stays_when_the_former_is_removed() -> None:
    """In a compacted log the new owner's record may come first."""
    owners = TaskOwners()
    former, later = (member(each, OwnedTasks({"0": {0: 1}})) for each in "pq")
    owners.add(former)
    owners.add(later)
    owners.remove(former)
    assert owners.lookups().active("0", 0) == "q"
