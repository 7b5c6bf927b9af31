"""Sets of tasks: what is owned, and what two sets make together."""

from __future__ import annotations

from mockbroker.core.groups.streams.tasks import OwnedTasks, Tasks, owns_any, owns_only


def test_a_task_is_owned_only_in_its_kind() -> None:
    revoking = OwnedTasks({"0": {1: 5}}, {"0": frozenset({2})})
    assert owns_any(Tasks(active={"0": frozenset({1, 7})}), revoking)
    assert owns_any(Tasks(standby={"0": frozenset({2})}), revoking)
    assert not owns_any(
        Tasks(active={"0": frozenset({2})}, standby={"0": frozenset({1})}), revoking
    )
    assert not owns_any(Tasks(active={"1": frozenset({1})}), revoking)


def test_a_report_is_compared_with_the_assigned_tasks() -> None:
    assigned = {"0": {0: 1, 1: 1}}
    assert owns_only((("0", (0,)),), assigned)
    assert owns_only((), assigned)
    assert not owns_only((("0", (2,)),), assigned)
    assert not owns_only((("1", ()),), assigned)
    assert not owns_only(None, assigned)


def test_merged_tasks_keep_their_epochs() -> None:
    kept = OwnedTasks({"0": {0: 3}}, {"1": frozenset({0})})
    free = OwnedTasks({"0": {1: 4}, "2": {0: 4}}, {"1": frozenset({5})})
    both = kept.merged(free)
    assert both.active == {"0": {0: 3, 1: 4}, "2": {0: 4}}
    assert both.standby == {"1": frozenset({0, 5})}
    assert kept.active == {"0": {0: 3}}
