"""The simple assignor: balance, sharing and stickiness. `tests/oracle` compares it with Kafka's."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.groups.assignors.base import AssignorGroup, Target
from mockbroker.core.groups.assignors.simple import assign_simple
from tests.support.assignor_groups import group, moved, shares, sizes, topic_id


def assigned(spec: AssignorGroup) -> dict[str, Target]:
    """Targets, all partitions having share state."""
    return assign_simple(spec, {t: frozenset(range(n)) for t, n in spec.partitions.items()})


def everybody(count: int, topics: str = "t") -> dict[str, str]:
    return {f"m{number}": topics for number in range(count)}


def holders(targets: Mapping[str, Target]) -> list[int]:
    """How many members each partition has."""
    found: dict[tuple[bytes, int], int] = {}
    for target in targets.values():
        for topic, partitions in target.items():
            for partition in partitions:
                found[topic, partition] = found.get((topic, partition), 0) + 1
    return sorted(found.values())


def test_without_members_or_topics_nothing_is_assigned() -> None:
    assert assigned(group({}, {})) == {}
    assert assigned(group({}, {"a": "", "b": ""})) == {}


def test_one_member_gets_everything() -> None:
    assert shares(assigned(group({"t": 3}, {"a": "t"}))) == {"a": {"t": [0, 1, 2]}}


def test_partitions_are_spread_while_there_are_enough() -> None:
    targets = assigned(group({"t": 5}, everybody(2)))
    assert (sizes(targets), holders(targets)) == ([2, 3], [1] * 5)


def test_members_share_partitions_if_there_are_more_members() -> None:
    targets = assigned(group({"t": 2}, everybody(6)))
    assert (sizes(targets), holders(targets)) == ([1] * 6, [3, 3])


def test_a_member_with_its_share_is_passed_over_in_the_next_turn() -> None:
    """Of six places, the first and the third member have two each."""
    targets = assigned(group({"t": 3}, everybody(4)))
    assert shares(targets) == {
        "m0": {"t": [0, 2]},
        "m1": {"t": [0]},
        "m2": {"t": [1, 2]},
        "m3": {"t": [1]},
    }


def test_members_keep_what_they_have() -> None:
    before = assigned(group({"t": 6}, everybody(2)))
    after = assigned(group({"t": 6}, everybody(3), before))
    assert sizes(after) == [2, 2, 2]
    assert moved(before, after) == 2


def test_partitions_without_state_are_not_assigned() -> None:
    spec = group({"t": 3}, {"a": "t"})
    assert shares(assign_simple(spec, {topic_id("t"): frozenset((1,))})) == {"a": {"t": [1]}}
    assert assign_simple(spec, {}) == {"a": {}}


def test_a_topic_that_nobody_subscribes_to_is_taken_away() -> None:
    before = assigned(group({"t": 2, "u": 2}, {"a": "tu"}))
    after = assigned(group({"t": 2}, {"a": "t"}, before))
    assert shares(after) == {"a": {"t": [0, 1]}}


def test_with_different_subscriptions_each_topic_is_balanced_alone() -> None:
    targets = assigned(group({"t": 4, "u": 2}, {"a": "t", "b": "tu"}))
    loads = {member: {t: len(ps) for t, ps in target.items()} for member, target in targets.items()}
    assert loads["a"] == {topic_id("t"): 2}
    assert loads["b"] == {topic_id("t"): 2, topic_id("u"): 2}


def test_with_different_subscriptions_members_keep_what_they_have() -> None:
    members = {"a": "t", "b": "tu"}
    before = {"a": {topic_id("t"): frozenset((1, 3))}, "b": {topic_id("t"): frozenset((0, 2))}}
    after = assigned(group({"t": 4, "u": 2}, members, before))
    assert shares(after) == {"a": {"t": [1, 3]}, "b": {"t": [0, 2], "u": [0, 1]}}


@given(st.integers(1, 12), st.integers(1, 12))
def test_a_new_group_is_balanced(partitions: int, members: int) -> None:
    targets = assigned(group({"t": partitions}, everybody(members)))
    loads, shared = sizes(targets), holders(targets)
    assert loads[-1] - loads[0] <= 1
    assert len(shared) == partitions
    assert shared[-1] <= -(-members // partitions)
