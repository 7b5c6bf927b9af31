"""Counts and reverse maps follow the members; a group's log may have been compacted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mockbroker.core.groups.consumer.events import RegexChange, ResolvedRegex
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings, Counter
from mockbroker.core.groups.consumer.members import ClassicMember, ConsumerMember
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.modern.events import (
    CurrentAssignment,
    CurrentAssignmentChange,
    MemberChange,
)
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import Playbook, Topics, join, leave, topic_id

T = topic_id("t")


def owning(epoch: int, *partitions: int) -> CurrentAssignment:
    return CurrentAssignment(
        epoch, epoch - 1, MemberState.STABLE, {T: dict.fromkeys(partitions, epoch)}, {}
    )


def test_a_counter_forgets_what_is_not_there() -> None:
    counter = Counter()
    counter.count("a", 1)
    counter.count("a", 1)
    counter.count("", 1)
    counter.count(None, 1)
    assert counter == {"a": 2}
    counter.count("a", -2)
    counter.count("b", -1)
    counter.count("b", 1)
    assert counter == {}


def test_names_and_regexes_are_counted_by_member() -> None:
    play = Playbook(Topics(t=1, u=1))
    play >> join("a", "t", regex="u.*")
    play.take()
    play >> join("b", "t")
    play.take()
    assert play.group.subscribed_names() == {"t", "u"}
    play >> leave("a")
    play.take()
    assert play.group.subscribed_names() == {"t"}


def test_a_partition_that_went_to_another_is_not_freed_by_its_former_owner() -> None:
    """Compaction drops the record in between, so the new owner may be read first."""
    group = ConsumerGroup("g", ConsumerSettings(), Topics(t=2))
    group.apply(
        [
            CurrentAssignmentChange("a", owning(2, 0, 1)),
            CurrentAssignmentChange("b", owning(4, 1)),
            CurrentAssignmentChange("a", owning(3, 0)),
        ]
    )
    assert [group.current_partition_epoch(T, p) for p in range(3)] == [3, 4, -1]


def test_records_of_a_member_may_come_in_any_order() -> None:
    member = ConsumerMember(member_id="a", topic_names=frozenset({"t"}), instance_id="i")
    changes = [MemberChange("a", member), CurrentAssignmentChange("a", owning(2, 0))]
    forwards, backwards = (ConsumerGroup("g", ConsumerSettings(), Topics(t=1)) for _ in range(2))
    forwards.apply(changes)
    backwards.apply(reversed(changes))
    assert forwards.members == backwards.members
    assert forwards.static_members == backwards.static_members == {"i": "a"}


def test_tombstones_of_what_is_not_there_change_nothing() -> None:
    group = ConsumerGroup("g", ConsumerSettings(), Topics())
    group.apply(
        [CurrentAssignmentChange("a", None), MemberChange("a", None), RegexChange("r", None)],
    )
    assert (group.members, group.resolved) == ({}, {})


def test_a_regex_that_is_resolved_anew_replaces_its_topics() -> None:
    group = ConsumerGroup("g", ConsumerSettings(), Topics())
    resolved = ResolvedRegex(frozenset({"t", "u"}), 1, 1)
    group.apply([RegexChange("r", resolved)])
    group.apply([RegexChange("r", msgspec.structs.replace(resolved, topics=frozenset({"u"})))])
    assert group.subscribed_names() == {"u"}


# ------------------------------------------------------------------------------ commits of offsets


@pytest.fixture
def owner() -> Playbook:
    """Member "a" at epoch 3 has partition 0 since epoch 2; member "old" is a classic one."""
    play = Playbook(Topics(t=2))
    protocols = (("range", b""),)
    old = ConsumerMember(member_id="old", classic=ClassicMember(10_000, protocols))
    play.group.apply(
        [
            MemberChange("a", ConsumerMember(member_id="a")),
            MemberChange("old", old),
            CurrentAssignmentChange(
                "a", CurrentAssignment(3, 2, MemberState.STABLE, {T: {0: 2}}, {})
            ),
            CurrentAssignmentChange("old", owning(3, 1)),
        ]
    )
    return play


def commits(group: ConsumerGroup, member: str, epoch: int, **fields: Any) -> ErrorCode:
    instance_id = fields.pop("instance_id", None)
    return group.check_commit(member, instance_id, epoch, 0, **fields)


def test_anybody_without_an_epoch_commits_for_a_group_without_members() -> None:
    group = ConsumerGroup("g", ConsumerSettings(), Topics(t=1))
    assert commits(group, "", -1) is ErrorCode.NONE
    assert commits(group, "a", 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_only_members_commit_for_a_group_that_has_some(owner: Playbook) -> None:
    assert commits(owner.group, "a", 3) is ErrorCode.NONE
    for member, epoch in (("", -1), ("b", 3), ("b", -1)):
        assert commits(owner.group, member, epoch) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_commits_for_a_group_without_naming_a_member(owner: Playbook) -> None:
    assert commits(owner.group, "", -1, transactional=True) is ErrorCode.NONE
    for member, epoch, instance_id in (("b", -1, None), ("", 0, None), ("", -1, "i")):
        found = commits(owner.group, member, epoch, transactional=True, instance_id=instance_id)
        assert found is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_commits_by_requests_that_have_its_epoch(owner: Playbook) -> None:
    """That is, from v9 on; for classic members and transactions it is a generation."""
    assert commits(owner.group, "a", 3, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commits(owner.group, "a", 3, version=9) is ErrorCode.NONE
    assert commits(owner.group, "a", 3, version=8, transactional=True) is ErrorCode.NONE
    assert commits(owner.group, "old", 3, version=8) is ErrorCode.NONE


def test_nobody_commits_with_an_epoch_of_the_future(owner: Playbook) -> None:
    assert commits(owner.group, "a", 4) is ErrorCode.STALE_MEMBER_EPOCH
    assert commits(owner.group, "a", 4, transactional=True) is ErrorCode.ILLEGAL_GENERATION
    assert commits(owner.group, "old", 4) is ErrorCode.ILLEGAL_GENERATION


def test_with_an_older_epoch_a_member_commits_for_what_it_has_had_since(owner: Playbook) -> None:
    def check(member: str, epoch: int, partition: int) -> ErrorCode:
        return owner.group.check_partition(member, epoch, "t", T, partition)

    assert check("a", 3, 1) is ErrorCode.NONE
    assert check("a", 2, 0) is ErrorCode.NONE
    assert check("a", 1, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert check("a", 2, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert check("old", 2, 1) is ErrorCode.ILLEGAL_GENERATION
    assert check("b", 2, 1) is ErrorCode.NONE
