"""Members of consumer groups leave, for good or for a while, and are sent away."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer.events import RegexChange
from mockbroker.core.groups.consumer.states import MIGRATION_POLICIES, ConsumerGroupState
from mockbroker.core.groups.events import Leave, Leaver, LeaveResult
from mockbroker.core.groups.modern.events import GroupChange
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import (
    SESSION_MS,
    Playbook,
    Topics,
    beat,
    join,
    leave,
    refused,
    told,
)

ALL = {"t": [0, 1, 2, 3]}
ONE = {"instance_id": "one"}


def test_whoever_leaves_takes_the_epoch_up() -> None:
    play = Playbook().stable("a", "b")
    epoch = play.group.epoch
    play >> leave("a") << told("a", -1, member_id="a", heartbeat_interval_ms=0)
    assert play.group.epoch == epoch + 1
    play >> beat("b", epoch, play.owned("b")) << told("b", epoch + 1, ALL)


def test_nothing_is_left_of_a_member_that_left() -> None:
    play = Playbook().stable("a")
    play >> leave("a") << told("a", -1)
    group = play.group
    assert (group.members, group.targets, group.subscribed_names()) == ({}, {}, set())
    assert group.deadline_ms() is None
    assert group.metadata_hash == 0


def test_a_static_member_is_away_for_no_longer_than_its_session() -> None:
    play = Playbook()
    play >> join("a", "t", **ONE) << told("a", 2, ALL)
    play >> leave("a", -2, **ONE) << told("a", -2)
    assert play.group.members["a"].epoch == -2
    assert play.owned("a") == ALL
    play.after(SESSION_MS)
    assert play.state is ConsumerGroupState.EMPTY


def test_what_a_static_member_has_is_not_given_away_while_it_is_away() -> None:
    play = Playbook()
    play >> join("a", "t", **ONE) << told("a", 2, ALL)
    play >> leave("a", -2, **ONE) << told("a", -2)
    play >> join("b", "t") << told("b", 3, {})


def test_a_static_member_comes_back_to_what_it_had() -> None:
    play = Playbook()
    play >> join("a", "t", **ONE) << told("a", 2, ALL)
    play >> leave("a", -2, **ONE) << told("a", -2)
    play >> join("b", "t", **ONE) << told("b", 2, ALL)
    assert play.group.epoch == 2
    assert list(play.group.members) == ["b"]
    play >> beat("a", 2, **ONE) << refused("a", ErrorCode.FENCED_INSTANCE_ID)
    play.after(SESSION_MS - 1) >> beat("b", 2, **ONE) << told("b", 2)
    # The timers of its former self concern it no longer.
    play.after(1)
    assert play.state is ConsumerGroupState.STABLE


def test_its_place_is_not_taken_before_it_has_left() -> None:
    play = Playbook()
    play >> join("a", "t", **ONE) << told("a", 2, ALL)
    play >> join("b", "t", **ONE) << refused("b", ErrorCode.UNRELEASED_INSTANCE_ID)
    play >> join("a", "t", **ONE) << refused("a", ErrorCode.UNRELEASED_INSTANCE_ID)
    play >> leave("b", -2, **ONE) << refused("b", ErrorCode.FENCED_INSTANCE_ID)


def test_a_static_member_may_leave_for_good() -> None:
    play = Playbook()
    play >> join("a", "t", **ONE) << told("a", 2, ALL)
    play >> leave("a", -1, **ONE) << told("a", -1)
    assert (play.state, play.group.static_members) == (ConsumerGroupState.EMPTY, {})


def test_it_comes_back_with_another_subscription() -> None:
    play = Playbook(Topics(t=1, u=1))
    play >> join("a", "t", **ONE) << told("a", 2, {"t": [0]})
    play >> leave("a", -2, **ONE) << told("a", -2)
    # What it had of the old topic nobody uses any more: it said that it owns nothing.
    play >> join("b", "u", **ONE) << told("b", 3, {"u": [0]})
    assert play.state is ConsumerGroupState.STABLE


def test_an_administrator_removes_members_by_instance() -> None:
    play = Playbook()
    play >> join("a", "t", **ONE) << told("a", 2, ALL)
    play >> Leave("admin", (Leaver("", "one"), Leaver("", "two"), Leaver("x"), Leaver("y", "one")))
    result = play.take()
    assert isinstance(result, LeaveResult)
    assert [line.error for line in result.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    ]
    assert play.state is ConsumerGroupState.EMPTY


def test_a_regex_goes_with_its_last_member() -> None:
    play = Playbook()
    play >> join("a", regex="t.*", topic_names=None) << told("a", 1, {})
    play >> join("b", regex="t.*", topic_names=None)
    play.take()
    play.stored.clear()
    play >> leave("a") << told("a", -1)
    assert not [change for change in play.stored if isinstance(change, RegexChange)]
    play >> leave("b") << told("b", -1)
    assert RegexChange("t.*", None) in play.stored
    assert play.stored[-1] == GroupChange(play.group.epoch, 0)


@pytest.mark.parametrize("policy", ["upgrade", "disabled"])
def test_groups_stay_what_they_are_if_the_policy_says_so(policy: str) -> None:
    play = Playbook(migration=MIGRATION_POLICIES[policy]).stable("a")
    play >> leave("a") << told("a", -1)
    assert not play.downgrades


def test_the_topics_of_a_pattern_still_count_when_another_member_leaves() -> None:
    """The hash of what the group reads is the same; without them it would be another."""
    play = Playbook(Topics(t=1, u=1))
    play >> join("a", regex="t.*", topic_names=None)
    play.take()
    play >> join("b", "t")
    play.take()
    before = play.group.metadata_hash
    assert before != 0
    play >> leave("b") << told("b", -1)
    assert play.group.metadata_hash == before
