"""Consumer groups: how members join, are given partitions, beat, time out and come back."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer.machine import handle
from mockbroker.core.groups.consumer.states import ConsumerGroupState, MemberState
from mockbroker.core.groups.events import Delete, Loaded, Unload
from mockbroker.core.groups.modern.events import Store
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import (
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    Topics,
    beat,
    join,
    leave,
    refused,
    told,
)

NOW_MS = 0
ALL = {"t": [0, 1, 2, 3]}


def test_the_first_member_gets_everything_at_once() -> None:
    play = Playbook()
    assert play.state is ConsumerGroupState.EMPTY
    play >> join("a", "t") << told("a", 2, ALL, heartbeat_interval_ms=5_000)
    assert play.state is ConsumerGroupState.STABLE
    play >> beat("a", 2, ALL) << told("a", 2)
    play.done()


def test_nothing_is_given_away_before_its_owner_lets_go() -> None:
    play = Playbook()
    play >> join("a", "t") << told("a", 2, ALL)
    play >> join("b", "t") << told("b", 3, {})
    assert play.state is ConsumerGroupState.RECONCILING
    play >> beat("a", 2) << told("a", 2, {"t": [0, 1]})
    assert play.group.members["a"].state is MemberState.UNREVOKED
    play >> beat("a", 2, ALL) << told("a", 2)
    play >> beat("b", 3, {}) << told("b", 3)
    play >> beat("a", 2, {"t": [0, 1]}) << told("a", 3)
    play >> beat("b", 3, {}) << told("b", 3, {"t": [2, 3]})
    assert play.state is ConsumerGroupState.STABLE
    play.done()


def test_no_partition_ever_has_two_owners() -> None:
    play = Playbook(Topics(t=7)).stable("a", "b", "c")
    owned = [p for m in "abc" for p in play.owned(m)["t"]]
    assert sorted(owned) == list(range(7))
    assert sorted(len(play.owned(m)["t"]) for m in "abc") == [2, 2, 3]


def test_a_new_target_waits_for_the_assignment_interval() -> None:
    """Until then the group is Assigning, and who joins gets nothing."""
    play = Playbook(assignment_interval_ms=1_000)
    play >> join("a", "t") << told("a", 2, ALL)
    play >> join("b", "t") << told("b", 2, {})
    assert play.state is ConsumerGroupState.ASSIGNING
    play.after(999) >> beat("b", 2, {}) << told("b", 2)
    play.after(1) >> beat("b", 2, {}) << told("b", 3)
    assert play.state is ConsumerGroupState.RECONCILING
    assert play.group.targets["b"]


def test_an_answer_that_got_lost_may_be_asked_for_again() -> None:
    """The previous epoch is good for a member that owns no more than it should."""
    play = Playbook().stable("a", "b")
    epoch = play.epoch("a")
    previous = play.group.members["a"].previous_epoch
    mine = play.owned("a")
    assert previous < epoch
    play >> beat("a", previous, mine) << told("a", epoch)
    play >> beat("a", previous, ALL) << refused("a", ErrorCode.FENCED_MEMBER_EPOCH)
    play >> beat("a", previous) << refused("a", ErrorCode.FENCED_MEMBER_EPOCH)
    play >> beat("a", epoch + 1, mine) << refused("a", ErrorCode.FENCED_MEMBER_EPOCH)
    play.done()


def test_a_full_request_is_answered_in_full() -> None:
    play = Playbook().stable("a")
    full = beat("a", 2, ALL, rebalance_timeout_ms=REBALANCE_MS, topic_names=frozenset({"t"}))
    play >> full << told("a", 2, ALL)
    play >> join("a", "t") << told("a", 2, ALL)
    play.done()


def test_who_is_not_there_is_unknown() -> None:
    play = Playbook().stable("a")
    play >> beat("b", 1) << refused("b", ErrorCode.UNKNOWN_MEMBER_ID)
    play >> leave("b") << refused("b", ErrorCode.UNKNOWN_MEMBER_ID)
    play >> beat("a", 2, instance_id="i") << refused("a", ErrorCode.UNKNOWN_MEMBER_ID)
    play.done()


def test_a_full_group_takes_nobody_in() -> None:
    play = Playbook(size_max=1).stable("a")
    play >> join("b", "t") << refused("b", ErrorCode.GROUP_MAX_SIZE_REACHED)
    play >> join("a", "t") << told("a", 2, ALL)


def test_the_epoch_rises_with_the_subscription() -> None:
    play = Playbook(Topics(t=1, u=2)).stable("a")
    play >> beat("a", 2, {"t": [0]}, topic_names=frozenset({"t", "u"}))
    play << told("a", 3, {"t": [0], "u": [0, 1]})
    play >> beat("a", 3, None, topic_names=frozenset({"u"})) << told("a", 3, {"u": [0, 1]})
    assert play.group.members["a"].state is MemberState.UNREVOKED
    play >> beat("a", 3, {"u": [0, 1]}) << told("a", 4)
    assert play.state is ConsumerGroupState.STABLE


@pytest.mark.parametrize("field", ["rack_id", "assignor", "client_id"])
def test_other_changes_are_written_down_but_raise_no_epoch(field: str) -> None:
    play = Playbook().stable("a")
    play.stored.clear()
    play >> beat("a", 2, ALL, **{field: "range"}) << told("a", 2)
    assert len(play.stored) == 1
    assert getattr(play.group.members["a"], field) == "range"


def test_a_topic_that_drops_out_is_taken_away_before_a_new_target() -> None:
    """Even while the assignment interval keeps the old target in force."""
    play = Playbook(Topics(t=1, u=1), assignment_interval_ms=1_000)
    play >> join("a", "t", "u") << told("a", 2, {"t": [0], "u": [0]})
    play >> beat("a", 2, {"t": [0], "u": [0]}, topic_names=frozenset({"u"}))
    play << told("a", 2, {"u": [0]})
    play >> beat("a", 2, {"u": [0]}) << told("a", 2)
    play.after(1_000) >> beat("a", 2, {"u": [0]}) << told("a", 3)
    assert play.state is ConsumerGroupState.STABLE


# --------------------------------------------------------------------------------------- topics


def test_a_topic_that_grows_is_shared_out_with_the_next_heartbeat() -> None:
    play = Playbook(Topics(t=1)).stable("a")
    play.topics.put("t", 3)
    play >> beat("a", 2, {"t": [0]}) << told("a", 3, {"t": [0, 1, 2]})


def test_a_topic_may_come_later() -> None:
    play = Playbook(Topics(other=1))
    play >> join("a", "t") << told("a", 2, {})
    play.topics.put("t", 1)
    play >> beat("a", 2, {}) << told("a", 3, {"t": [0]})


def test_a_deleted_topic_is_taken_away() -> None:
    play = Playbook(Topics(t=1, u=1)).stable("a", topics=("t", "u"))
    play.topics.drop("t")
    play >> beat("a", 2, {"t": [0], "u": [0]}) << told("a", 2, {"u": [0]})
    play >> beat("a", 2, {"u": [0]}) << told("a", 3)


def test_a_topic_made_anew_is_another_one() -> None:
    play = Playbook(Topics(t=1)).stable("a")
    play.topics.drop("t")
    play.topics.put("t", 1, again=1)
    play >> beat("a", 2, {})
    result = play.take()
    assert (result.epoch, list(result.assignment.values())) == (3, [(0,)])


def test_other_topics_raise_no_epoch() -> None:
    play = Playbook().stable("a")
    play.topics.put("other", 5)
    play.stored.clear()
    play >> beat("a", 2, ALL) << told("a", 2)
    assert not play.stored


# --------------------------------------------------------------------------------------- timers


def test_a_silent_member_is_out_after_its_session() -> None:
    play = Playbook().stable("a", "b")
    play.after(SESSION_MS - 1) >> beat("a", 3) << told("a", 3)
    play.after(1)
    assert list(play.group.members) == ["a"]
    play >> beat("a", 3, play.owned("a")) << told("a", 4, ALL)
    play >> beat("b", 3) << refused("b", ErrorCode.UNKNOWN_MEMBER_ID)


def test_who_does_not_let_go_in_time_is_out() -> None:
    play = Playbook(session_timeout_ms=10 * REBALANCE_MS)
    play >> join("a", "t") << told("a", 2, ALL)
    play >> join("b", "t") << told("b", 3, {})
    play >> beat("a", 2, ALL) << told("a", 2, {"t": [0, 1]})
    play.after(REBALANCE_MS - 1) >> beat("a", 2, ALL) << told("a", 2)
    play.after(1)
    assert list(play.group.members) == ["b"]
    play >> beat("b", 3, {}) << told("b", 4, ALL)


def test_who_lets_go_in_time_stays() -> None:
    play = Playbook(session_timeout_ms=10 * REBALANCE_MS)
    play >> join("a", "t") << told("a", 2, ALL)
    play >> join("b", "t") << told("b", 3, {})
    play >> beat("a", 2, ALL) << told("a", 2, {"t": [0, 1]})
    play >> beat("a", 2, {"t": [0, 1]}) << told("a", 3)
    play.after(2 * REBALANCE_MS)
    assert list(play.group.members) == ["a", "b"]


def test_a_session_that_could_not_be_ended_is_ended_later() -> None:
    play = Playbook().stable("a")
    play.storing = ErrorCode.COORDINATOR_NOT_AVAILABLE
    play.after(SESSION_MS)
    assert list(play.group.members) == ["a"]
    play.storing = ErrorCode.NONE
    play.after(500)
    assert play.state is ConsumerGroupState.EMPTY


def test_sessions_start_anew_after_loading() -> None:
    play = Playbook()
    play >> join("a", "t") << told("a", 2, ALL)
    play >> join("b", "t") << told("b", 3, {})
    play >> beat("a", 2, ALL) << told("a", 2, {"t": [0, 1]})
    again = Playbook(play.topics, session_timeout_ms=SESSION_MS)
    again.group.apply(play.stored)
    again >> Loaded()
    assert again.group.deadline_ms() == again.now_ms + SESSION_MS
    again.after(SESSION_MS)
    assert again.state is ConsumerGroupState.EMPTY


# ------------------------------------------------------------------------------ what is stored


def test_what_could_not_be_stored_has_not_happened() -> None:
    play = Playbook()
    play.storing = ErrorCode.COORDINATOR_NOT_AVAILABLE
    play >> join("a", "t") << refused("a", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert play.state is ConsumerGroupState.EMPTY
    play.storing = ErrorCode.NONE
    play >> join("a", "t") << told("a", 2, ALL)


def test_a_change_of_metadata_is_not_forgotten_if_it_could_not_be_stored() -> None:
    play = Playbook(Topics(t=1)).stable("a")
    play.topics.put("t", 2)
    play.storing = ErrorCode.NOT_COORDINATOR
    play >> beat("a", 2, {"t": [0]}) << refused("a", ErrorCode.NOT_COORDINATOR)
    play.storing = ErrorCode.NONE
    play >> beat("a", 2, {"t": [0]}) << told("a", 3, {"t": [0, 1]})


def test_the_same_changes_make_the_same_group() -> None:
    play = Playbook(Topics(t=4, u=2)).stable("a", "b")
    play >> join("c", "t", "u")
    play.take()
    play.settle("a", "b", "c") >> leave("b")
    play.take()
    again = Playbook(play.topics)
    again.group.apply(play.stored)
    for name in (
        "members",
        "targets",
        "static_members",
        "epoch",
        "assignment_epoch",
        "metadata_hash",
    ):
        assert getattr(again.group, name) == getattr(play.group, name)


# ----------------------------------------------------------------------------------- the group


def test_a_group_is_deleted_when_it_is_empty() -> None:
    play = Playbook().stable("a")
    assert play.group.check_delete() is ErrorCode.NON_EMPTY_GROUP
    play >> leave("a") << told("a", -1)
    assert play.group.check_delete() is ErrorCode.NONE
    play >> Delete()
    assert play.state is ConsumerGroupState.DEAD
    assert play.group.check_delete() is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_unloaded_group_is_dead_and_stores_nothing() -> None:
    play = Playbook().stable("a")
    play.stored.clear()
    play >> Unload()
    assert (play.state, play.stored) == (ConsumerGroupState.DEAD, [])


# ------------------------------------------------------------------------------------- offsets


def test_members_commit_at_their_epoch_or_since_they_own_a_partition() -> None:
    play = Playbook().stable("a", "b")
    group = play.group
    (topic,) = group.members["a"].assigned
    mine, other = play.owned("a")["t"][0], play.owned("b")["t"][0]
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert group.check_commit("a", None, 3, NOW_MS) is ErrorCode.NONE
    assert group.check_commit("a", None, 4, NOW_MS) is stale
    assert group.check_commit("a", None, 2, NOW_MS) is ErrorCode.NONE
    assert group.check_partition("a", 2, "t", topic, mine) is ErrorCode.NONE
    assert group.check_partition("a", 2, "t", topic, other) is stale
    assert group.check_partition("a", 1, "t", topic, mine) is stale
    assert group.check_partition("a", 3, "t", topic, other) is ErrorCode.NONE
    assert group.check_commit("x", None, 3, NOW_MS) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_commit("a", None, 3, NOW_MS, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert group.check_commit("", None, -1, NOW_MS) is ErrorCode.UNKNOWN_MEMBER_ID


def test_transactions_commit_without_a_member_but_not_with_a_wrong_one() -> None:
    group = Playbook().stable("a").group
    assert group.check_commit("", None, -1, NOW_MS, transactional=True) is ErrorCode.NONE
    assert group.check_commit("a", None, 2, NOW_MS, transactional=True, version=3) is ErrorCode.NONE
    assert (
        group.check_commit("a", None, 9, NOW_MS, transactional=True) is ErrorCode.ILLEGAL_GENERATION
    )
    assert (
        group.check_commit("x", None, -1, NOW_MS, transactional=True) is ErrorCode.UNKNOWN_MEMBER_ID
    )


def test_anybody_commits_for_an_empty_group() -> None:
    assert Playbook().group.check_commit("", None, -1, NOW_MS) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (None, -1, ErrorCode.NONE),
        ("a", 2, ErrorCode.NONE),
        ("a", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 2, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_offsets_are_fetched_by_members_on_time(
    member: str | None, epoch: int, error: ErrorCode
) -> None:
    assert Playbook().stable("a").group.check_fetch(member, epoch) is error


def test_a_batch_of_changes_is_one_store() -> None:
    """So that a log that was cut off never shows half of a heartbeat."""
    play = Playbook()
    effects = handle(play.group, join("a", "t"), play.now_ms)
    assert [type(effect) for effect in effects] == [Store]
