"""The uniform assignor for equal subscriptions: even, and nobody loses more than it must."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.groups.assignors.base import Target
from mockbroker.core.groups.assignors.uniform import assign_uniform
from tests.support.assignor_groups import check, group, moved, shares, sizes

names = st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=8, unique=True)


def assign(partitions: int, members: list[str], before: dict[str, Target]) -> dict[str, Target]:
    return check(assign_uniform, group({"t": partitions}, dict.fromkeys(members, "t"), before))


def test_nobody_gets_anything_of_topics_that_are_not_there() -> None:
    assert assign_uniform(group({}, {"a": "", "b": ""})) == {}
    assert assign_uniform(group({}, {})) == {}


@pytest.mark.covers("S236")
def test_the_first_member_gets_everything_and_shares_with_the_next() -> None:
    first = assign(4, ["a"], {})
    assert shares(first) == {"a": {"t": [0, 1, 2, 3]}}
    second = assign(4, ["a", "b"], first)
    assert shares(second) == {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}


def test_the_extra_partition_stays_with_whoever_has_it() -> None:
    before = assign(3, ["b"], {})
    after = assign(3, ["a", "b"], before)
    assert sizes(after) == [1, 2]
    assert len(shares(after)["b"]["t"]) == 2


def test_topics_that_nobody_subscribes_to_any_more_are_given_up() -> None:
    before = check(assign_uniform, group({"t": 2, "u": 2}, {"a": "tu"}))
    after = check(assign_uniform, group({"t": 2, "u": 2}, {"a": "u"}, before))
    assert shares(after) == {"a": {"u": [0, 1]}}


@given(st.integers(1, 20), st.lists(names, min_size=1, max_size=5))
def test_whoever_comes_and_goes_shares_stay_even_and_moves_few(
    partitions: int, generations: list[list[str]]
) -> None:
    before: dict[str, Target] = {}
    for members in generations:
        after = assign(partitions, members, before)
        counts = sizes(after)
        assert counts[-1] - counts[0] <= 1
        fair = -(-partitions // len(members))
        surplus = sum(
            max(0, len(ps) - partitions // len(members))
            for m, target in before.items()
            if m in after
            for ps in target.values()
        )
        # Nobody loses what it could have kept: at most what it had beyond the smaller quota.
        assert moved(before, after) <= surplus
        assert counts[-1] <= fair
        before = after


@given(st.integers(1, 20), names)
def test_nothing_moves_when_nothing_changes(partitions: int, members: list[str]) -> None:
    before = assign(partitions, members, {})
    assert assign(partitions, members, before) == before
