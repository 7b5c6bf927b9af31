"""The sticky task assignor: balance, stickiness, standbys on other processes."""

from __future__ import annotations

import random
from collections import Counter

from mockbroker.core.groups.streams.sticky import (
    AssignedMember,
    AssignedSubtopology,
    assign_sticky,
)
from mockbroker.core.groups.streams.tasks import NO_TASKS, Tasks

STATEFUL = {"0": AssignedSubtopology(6, True)}


def members(*names: str, last: dict[str, Tasks] | None = None) -> dict[str, AssignedMember]:
    """Members of processes of their own; "b2" is a second thread of process "b"."""
    return {name: AssignedMember(name[0], (last or {}).get(name, NO_TASKS)) for name in names}


def count(tasks: Tasks) -> int:
    return sum(map(len, tasks.active.values()))


def test_tasks_are_spread_evenly() -> None:
    targets = assign_sticky(members("a", "b", "c"), STATEFUL, 0)
    assert [count(each) for each in targets.values()] == [2, 2, 2]
    assert not any(each.standby or each.warmup for each in targets.values())


def test_a_process_with_two_threads_gets_twice_as_much() -> None:
    targets = assign_sticky(members("a", "b1", "b2"), STATEFUL, 0)
    assert [count(targets[name]) for name in ("a", "b1", "b2")] == [2, 2, 2]


def test_tasks_stay_when_a_member_leaves_and_move_only_as_needed_when_one_comes() -> None:
    first = assign_sticky(members("a", "b", "c"), STATEFUL, 0)
    left = assign_sticky(members("a", "b", last=first), STATEFUL, 0)
    assert all(first[name].active["0"] < left[name].active["0"] for name in ("a", "b"))
    came = assign_sticky(members("a", "b", "d", last=left), STATEFUL, 0)
    assert all(came[name].active["0"] < left[name].active["0"] for name in ("a", "b"))
    assert count(came["d"]) == 2


def test_standbys_are_on_other_processes_than_the_active_task() -> None:
    targets = assign_sticky(members("a", "b", "c"), STATEFUL, 1)
    for tasks in targets.values():
        assert not tasks.active["0"] & tasks.standby["0"]
    assert sorted(p for each in targets.values() for p in each.standby["0"]) == [*range(6)]


def test_a_stateless_subtopology_has_no_standbys() -> None:
    targets = assign_sticky(members("a", "b"), {"0": AssignedSubtopology(4, False)}, 1)
    assert not any(each.standby for each in targets.values())


def test_one_process_cannot_keep_a_copy_of_its_own_task() -> None:
    targets = assign_sticky(members("b1", "b2"), STATEFUL, 2)
    assert not any(each.standby for each in targets.values())


def test_a_standby_becomes_active_when_the_active_member_is_gone() -> None:
    first = assign_sticky(members("a", "b"), STATEFUL, 1)
    alone = assign_sticky(members("b", last=first), STATEFUL, 1)
    assert alone["b"].active == {"0": frozenset(range(6))}


def test_each_standby_becomes_active_where_it_was() -> None:
    """Not where the tasks would go by turns."""
    for left, right in ((range(3), range(3, 6)), (range(3, 6), range(3)), ((0, 3, 5), (1, 2, 4))):
        last = {
            "a": Tasks({}, {"0": frozenset(left)}),
            "b": Tasks({}, {"0": frozenset(right)}),
        }
        targets = assign_sticky(members("a", "b", last=last), STATEFUL, 0)
        assert targets["a"].active["0"] == frozenset(left)
        assert targets["b"].active["0"] == frozenset(right)


def test_of_several_standbys_that_of_the_least_loaded_process_becomes_active() -> None:
    last = {
        "a": Tasks({"0": frozenset({1})}, {"0": frozenset({0})}),
        "b": Tasks({}, {"0": frozenset({0})}),
        "c": Tasks({"0": frozenset({2, 3})}),
    }
    targets = assign_sticky(members("a", "b", "c", last=last), STATEFUL, 0)
    assert 0 in targets["b"].active["0"]


def test_a_former_active_member_with_room_for_one_standby_gets_that_of_the_highest_partition() -> (
    None
):
    last = {"b": Tasks({"0": frozenset({0, 1, 2})})}
    three = {"0": AssignedSubtopology(3, True)}
    targets = assign_sticky(members("a", "b", "c", last=last), three, 1)
    assert (targets["b"].active, targets["b"].standby) == (
        {"0": frozenset({0})},
        {"0": frozenset({2})},
    )


def test_any_assignment_is_complete_and_balanced() -> None:
    """Random groups over several rounds: each task is active once, no process has one twice."""
    rng = random.Random(7)
    for _ in range(60):
        subtopologies = {
            str(n): AssignedSubtopology(rng.randint(1, 6), rng.random() < 0.5) for n in range(3)
        }
        targets: dict[str, Tasks] = {}
        for _ in range(4):
            names = [f"{rng.choice('abcd')}{n}" for n in range(rng.randint(1, 5))]
            group = members(*names, last=targets)
            targets = assign_sticky(group, subtopologies, rng.randint(0, 2))
            active = Counter(
                (s, p) for each in targets.values() for s, ps in each.active.items() for p in ps
            )
            wanted = {(s, p) for s, each in subtopologies.items() for p in range(each.tasks)}
            assert active == Counter(wanted)
            processes = Counter(
                (group[name].process_id, s, p)
                for name, each in targets.items()
                for kind in (each.active, each.standby)
                for s, ps in kind.items()
                for p in ps
            )
            assert max(processes.values()) == 1
