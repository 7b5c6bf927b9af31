"""What the groups of all newer protocols keep and refuse, with share and streams groups."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.modern.events import (
    CurrentAssignment,
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
    removal,
)
from mockbroker.core.groups.share.group import ShareGroup, ShareSettings
from mockbroker.core.groups.share.members import ShareMember
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import Topics

T = b"t" * 16
MEMBER = ShareMember(member_id="m", client_id="c", topic_names=frozenset({"t"}))


def new_group() -> ShareGroup:
    return ShareGroup("g", ShareSettings(size_max=1), Topics(t=1))


def joined() -> ShareGroup:
    group = new_group()
    current = CurrentAssignment(3, 2, 0, {T: frozenset({0})}, {})
    group.apply(
        (
            MemberChange("m", MEMBER),
            TargetAssignmentChange("m", {T: frozenset({0})}),
            CurrentAssignmentChange("m", current),
            GroupChange(3, 9),
            TargetEpochChange(3, 500),
        )
    )
    return group


def test_changes_of_a_member_and_of_its_assignment_come_in_any_order() -> None:
    changes: list[StoredChange] = [
        MemberChange("m", MEMBER),
        CurrentAssignmentChange("m", CurrentAssignment(3, 2, 0, {T: frozenset({0})}, {})),
    ]
    forwards, backwards = new_group(), new_group()
    forwards.apply(changes)
    backwards.apply(reversed(changes))
    assert forwards.members == backwards.members
    assert (forwards.members["m"].epoch, forwards.members["m"].client_id) == (3, "c")


def test_a_removed_assignment_leaves_a_member_without_an_epoch() -> None:
    group = joined()
    group.apply((CurrentAssignmentChange("m", None), CurrentAssignmentChange("other", None)))
    member = group.members["m"]
    assert (member.epoch, member.previous_epoch, member.assigned) == (-1, -1, {})
    assert list(group.members) == ["m"]


def test_a_removal_takes_the_member_and_its_target() -> None:
    group = joined()
    group.apply(removal("m"))
    group.apply(removal("m"))
    assert (group.members, group.targets, group.is_empty()) == ({}, {}, True)


def test_the_target_epoch_has_a_time_until_its_tombstone() -> None:
    group = joined()
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (3, 500)
    assert not group.may_assign(1_499)
    assert group.may_assign(1_500)
    group.apply((TargetEpochChange(None),))
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (-1, 0)
    assert group.may_assign(0)


def test_the_tombstones_of_a_group_remove_all_that_it_has() -> None:
    group = joined()
    group.apply(group.tombstones())
    assert group.dead
    assert (group.members, group.targets) == ({}, {})
    assert [value for _, value in group.tombstone_records()] == [None] * 3


def test_one_member_more_than_the_group_may_have_is_refused() -> None:
    group = joined()
    group.check_size("m")
    with pytest.raises(ApiError, match="share group has reached its maximum capacity of 1 members"):
        group.check_size("n")


def test_an_unknown_member_is_refused_by_name() -> None:
    group = joined()
    assert group.known_member("m") is group.members["m"]
    with pytest.raises(ApiError, match="Member n is not a member of group g"):
        group.known_member("n")


def test_a_fenced_member_reads_which_epoch_was_expected() -> None:
    group = joined()
    member = group.members["m"]
    assert "greater member epoch (4)" in str(group.fenced(member, 4, previous_allowed=True).message)
    smaller = str(group.fenced(member, 1, previous_allowed=True).message)
    assert "smaller member epoch (1)" in smaller
    assert "does not match the previous member epoch (2)" in smaller
    assert "previous" not in str(group.fenced(member, 1).message)


def test_a_stale_epoch_has_the_error_of_its_request() -> None:
    group = joined()
    member = group.members["m"]
    assert group.stale_epoch(member, transactional=True) is ErrorCode.ILLEGAL_GENERATION
    assert group.stale_epoch(member, transactional=False) is ErrorCode.STALE_MEMBER_EPOCH


def test_the_next_epoch_keeps_the_hash() -> None:
    assert joined().next_epoch() == GroupChange(4, 9)


def test_a_failed_write_has_the_metadata_compared_again() -> None:
    group = joined()
    group.compared_metadata_version = group.topics.version
    group.request_metadata_refresh()
    assert group.compared_metadata_version == -1
