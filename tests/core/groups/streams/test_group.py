"""The checks of a streams group: commits, fetches, deletion, subscriptions."""

from __future__ import annotations

import msgspec
import pytest

from mockbroker.core.groups.streams.tasks import OwnedTasks
from mockbroker_protocol import ErrorCode
from tests.support.streams_playbook import StreamsPlay, reading

NONE, STALE = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH
ILLEGAL = ErrorCode.ILLEGAL_GENERATION


@pytest.fixture
def play() -> StreamsPlay:
    """Member "a" at epoch 3 with task 0 since epoch 2, "b" with task 1 since epoch 3."""
    play = StreamsPlay(t=2, other=1)
    play.join("a", reading("t"))
    play.join("b", reading("t"))
    play.settle("a", "b")
    assert [play.group.members[each].epoch for each in "ab"] == [3, 3]
    return play


def test_a_commit_needs_a_known_member_and_its_epoch(play: StreamsPlay) -> None:
    check = play.group.check_commit
    assert check("a", None, 3, 0) is NONE
    assert check("a", None, 4, 0) is STALE
    assert check("x", None, 3, 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert check("a", None, 3, 0, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert check("a", None, 4, 0, transactional=True) is ILLEGAL
    assert check("", None, -1, 0, transactional=True) is NONE
    assert check("", None, -1, 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_older_epoch_may_commit_for_tasks_owned_since_then(play: StreamsPlay) -> None:
    def check(member: str, epoch: int, topic: str, partition: int, **options: bool) -> ErrorCode:
        return play.group.check_partition(member, epoch, topic, bytes(16), partition, **options)

    assert check("a", 2, "t", 0) is NONE
    assert check("a", 1, "t", 0) is STALE
    assert check("a", 2, "t", 1) is STALE
    assert check("b", 2, "t", 1) is STALE
    assert check("a", 2, "other", 0) is STALE
    assert check("a", 2, "other", 0, transactional=True) is ILLEGAL
    assert check("a", 3, "other", 0) is NONE


def test_an_empty_group_takes_commits_without_a_member(play: StreamsPlay) -> None:
    play.leave("a")
    play.leave("b")
    assert play.group.check_commit("", None, -1, 0) is NONE
    assert play.group.check_delete() is NONE


def test_a_fetch_of_offsets_names_no_member_or_its_epoch(play: StreamsPlay) -> None:
    check = play.group.check_fetch
    assert check(None, -1) is NONE
    assert check("a", 3) is NONE
    assert check("a", 2) is STALE
    assert check("x", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert check(None, 0) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_group_in_use_is_subscribed_to_what_it_reads(play: StreamsPlay) -> None:
    assert play.group.is_subscribed("t")
    assert not play.group.is_subscribed("other")
    assert play.group.check_delete() is ErrorCode.NON_EMPTY_GROUP
    play.leave("a")
    play.leave("b")
    assert not play.group.is_subscribed("t")


def test_the_partitions_of_a_member_are_those_of_its_active_tasks(play: StreamsPlay) -> None:
    assert play.group.partitions_of(play.group.members["b"]) == {"t": [1]}


def test_a_task_that_a_member_no_longer_has_has_no_owner(play: StreamsPlay) -> None:
    """Neither after the member's end, even if that is all that the log says."""
    active, group = play.group.owners.lookups().active, play.group
    assert [active("0", each) for each in range(2)] == ["p-a", "p-b"]
    group.remove_member(group.members["b"])
    assert [active("0", each) for each in range(2)] == ["p-a", None]
    member = group.members["a"]
    group.put_member(member, msgspec.structs.replace(member, assigned=OwnedTasks()))
    assert active("0", 0) is None


def test_what_a_member_was_told_or_asked_for_ends_with_it(play: StreamsPlay) -> None:
    """A requested shutdown ends with the last member."""
    group = play.group
    group.stale_members.update("ab")
    group.shutdown_by = "a"
    left = []
    for member_id in "ab":
        group.remove_member(group.members[member_id])
        left.append((sorted(group.stale_members), group.shutdown_by))
    assert left == [(["b"], "a"), ([], None)]


def test_a_group_does_not_see_a_topic_that_it_has_lost(play: StreamsPlay) -> None:
    play.group.lose_topic("t", lost=True)
    assert (play.group.partition_count("t"), play.group.configured) == (None, None)
    play.group.lose_topic("t", lost=False)
    assert play.group.partition_count("t") == 2
