"""What members own and report."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer.members import (
    ConsumerMember,
    Reported,
    owns_any,
    owns_only,
    with_epoch,
)
from mockbroker.core.groups.consumer.states import MemberState

T, U = b"t" * 16, b"u" * 16


@pytest.mark.parametrize(
    ("reported", "only", "some"),
    [
        (None, False, True),
        ({}, True, False),
        ({T: ()}, True, False),
        ({T: (0,)}, True, True),
        ({T: (0, 2)}, False, True),
        ({U: (0,)}, False, False),
    ],
)
def test_what_a_member_reports_is_compared_with_what_it_owns(
    reported: Reported, only: bool, some: bool
) -> None:
    owned = {T: {0: 3, 1: 3}}
    assert owns_only(reported, owned) is only
    assert owns_any(reported, owned) is some


def test_a_partition_is_owned_since_an_epoch() -> None:
    member = ConsumerMember(member_id="a", assigned={T: {0: 3}}, revoking={T: {1: 2}})
    assert [member.assignment_epoch_of(T, p) for p in range(3)] == [3, 2, None]
    assert with_epoch({T: frozenset({1, 0})}, 4) == {T: {0: 4, 1: 4}}


def test_a_member_is_reconciled_when_it_is_stable_at_the_assignment_epoch() -> None:
    assert ConsumerMember(member_id="a", epoch=3).is_reconciled(3)
    assert not ConsumerMember(member_id="a", epoch=3).is_reconciled(4)
    waiting = ConsumerMember(member_id="a", epoch=3, state=MemberState.UNRELEASED)
    assert not waiting.is_reconciled(3)
