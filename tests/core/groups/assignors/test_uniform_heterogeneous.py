"""The uniform assignor for different subscriptions: as balanced as they allow."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given

from mockbroker.core.groups.assignors.base import AssignorGroup, AssignorMember
from mockbroker.core.groups.assignors.uniform_heterogeneous import assign_heterogeneous
from tests.support.assignor_groups import (
    check,
    group,
    moved,
    partition_counts,
    shares,
    sizes,
    subscriptions,
    topic_id,
)


def test_nobody_gets_anything_of_topics_that_are_not_there() -> None:
    assert assign_heterogeneous(group({}, {"a": "", "b": ""})) == {}


def test_what_only_one_reads_is_made_up_for_in_what_others_read_too() -> None:
    targets = check(assign_heterogeneous, group({"t": 4, "u": 4}, {"a": "t", "b": "tu"}))
    assert shares(targets) == {"a": {"t": [0, 1, 2, 3]}, "b": {"u": [0, 1, 2, 3]}}


def test_members_keep_what_they_have() -> None:
    spec = group({"t": 2, "u": 2}, {"a": "tu", "b": "u"})
    before = check(assign_heterogeneous, spec)
    again = group({"t": 2, "u": 2}, {"a": "tu", "b": "u"}, before)
    assert check(assign_heterogeneous, again) == before


def test_what_is_no_longer_subscribed_goes_to_somebody_else() -> None:
    before = check(assign_heterogeneous, group({"t": 2, "u": 2}, {"a": "t", "b": "u"}))
    after = check(assign_heterogeneous, group({"t": 2, "u": 2}, {"a": "tu", "b": "t"}, before))
    assert shares(after) == {"a": {"u": [0, 1]}, "b": {"t": [0, 1]}}


def test_partitions_move_from_the_most_to_the_least_loaded() -> None:
    everything = {"a": {topic_id("t"): frozenset(range(6))}}
    spec = group({"t": 6, "u": 1}, {"a": "tu", "b": "t", "c": "t"}, everything)
    after = check(assign_heterogeneous, spec)
    assert sizes(after) == [2, 2, 3]
    assert moved(everything, after) == 4


def test_one_move_of_a_topic_gives_the_other_topics_another_turn() -> None:
    before = {"b": {topic_id("u"): frozenset({2})}, "c": {topic_id("t"): frozenset({0})}}
    spec = group({"t": 1, "u": 4}, {"a": "t", "b": "u", "c": "tu"}, before)
    assert sizes(check(assign_heterogeneous, spec)) == [1, 2, 2]


@given(partition_counts, subscriptions)
def test_no_single_move_would_make_it_more_even(
    partitions: dict[str, int], wanted: dict[str, str]
) -> None:
    """Nobody has two more than another who reads a topic of theirs."""
    targets = check(assign_heterogeneous, group(partitions, wanted))
    loads = {m: sum(map(len, target.values())) for m, target in targets.items()}
    for topic in partitions:
        readers = sorted((m for m, ts in wanted.items() if topic in ts), key=loads.__getitem__)
        givers = [m for m in readers if topic_id(topic) in targets[m]]
        if givers:
            assert loads[givers[-1]] - loads[readers[0]] <= 1


@given(partition_counts, subscriptions, subscriptions)
def test_any_change_of_subscriptions_ends_in_a_whole_assignment(
    partitions: dict[str, int], first: dict[str, str], second: dict[str, str]
) -> None:
    before = check(assign_heterogeneous, group(partitions, first))
    after = check(assign_heterogeneous, group(partitions, second, before))
    assert all(low <= high for low, high in pairwise(sizes(after)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("00000000000000010000000000000002", "00000000000000020000000000000001"),
        ("80000000000000000000000000000002", "00000000000000000000000000000001"),
        ("00000000000000008000000000000000", "00000000000000000000000000000001"),
        ("00000000000000000100000000000002", "00000000000000000200000000000001"),
        ("00000000000000000000000000000001", "00000000000000000000000000000002"),
    ],
)
def test_topics_alike_come_by_the_signed_halves_of_their_ids(first: str, second: str) -> None:
    """The topic that comes first goes to the first member."""
    one, other, third = bytes.fromhex(first), bytes.fromhex(second), topic_id("t")
    both, alone = frozenset({one, other}), frozenset({third})
    members = {
        name: AssignorMember(None, topics, {})
        for name, topics in (("a", both), ("b", both), ("c", alone))
    }
    targets = assign_heterogeneous(AssignorGroup(members, False, {one: 1, other: 1, third: 1}))
    assert [set(targets[name]) for name in "abc"] == [{one}, {other}, {third}]


def test_topics_with_more_partitions_for_each_member_come_first() -> None:
    """And among equals those with fewer members."""
    spec = group({"t": 1, "u": 2}, {"a": "tu", "b": "tu", "c": ""})
    assert shares(assign_heterogeneous(spec)) == {
        "a": {"t": [0], "u": [0]},
        "b": {"u": [1]},
        "c": {},
    }
    spec = group({"t": 4, "u": 2}, {"a": "tu", "b": "tu", "c": "t", "d": "t"})
    assert shares(assign_heterogeneous(spec)) == {
        "a": {"u": [0]},
        "b": {"u": [1]},
        "c": {"t": [0, 2]},
        "d": {"t": [1, 3]},
    }
