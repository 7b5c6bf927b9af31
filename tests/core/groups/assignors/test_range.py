"""The range assignor: contiguous, co-partitioned, static members first."""

from __future__ import annotations

import pytest
from hypothesis import given

from mockbroker.core.groups.assignors.range import assign_range
from tests.support.assignor_groups import check, group, partition_counts, shares, subscriptions


@pytest.mark.covers("S236")
def test_each_topic_is_cut_into_ranges() -> None:
    targets = check(assign_range, group({"t": 7, "u": 3}, {"a": "tu", "b": "tu", "c": "tu"}))
    assert shares(targets) == {
        "a": {"t": [0, 1, 2], "u": [0]},
        "b": {"t": [3, 4], "u": [1]},
        "c": {"t": [5, 6], "u": [2]},
    }


def test_members_beyond_the_partitions_get_nothing() -> None:
    targets = check(assign_range, group({"t": 1}, {"b": "t", "a": "t"}))
    assert shares(targets) == {"a": {"t": [0]}, "b": {}}


def test_static_members_come_first_by_their_instance() -> None:
    """So that one keeps its range when it comes back under another member id."""
    spec = group({"t": 3}, {"a": "t", "z": "t", "y": "t"}, instances={"z": "1", "y": "2"})
    assert shares(check(assign_range, spec)) == {"z": {"t": [0]}, "y": {"t": [1]}, "a": {"t": [2]}}


def test_ranges_are_of_the_subscribers_only() -> None:
    targets = check(assign_range, group({"t": 4, "u": 2}, {"a": "t", "b": "tu"}))
    assert shares(targets) == {"a": {"t": [0, 1]}, "b": {"t": [2, 3], "u": [0, 1]}}


@given(partition_counts, subscriptions)
def test_every_range_is_contiguous_and_fair(
    partitions: dict[str, int], wanted: dict[str, str]
) -> None:
    targets = check(assign_range, group(partitions, wanted))
    for target in targets.values():
        for owned in target.values():
            assert owned == frozenset(range(min(owned), max(owned) + 1))
    for topic, count in partitions.items():
        readers = [m for m, topics in wanted.items() if topic in topics]
        owned_each = [len(shares(targets)[m].get(topic, ())) for m in readers]
        assert all(n in (count // len(readers), -(-count // len(readers))) for n in owned_each)
