"""Regexes and assignors of consumer groups: when they are looked up, who decides."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.groups.consumer.events import RegexChange, RegexesResolved
from mockbroker.core.groups.consumer.states import ConsumerGroupState, MemberState
from mockbroker.core.groups.events import ConsumerResult
from mockbroker.core.groups.modern.events import CurrentAssignment, CurrentAssignmentChange
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import (
    REBALANCE_MS,
    Playbook,
    Told,
    Topics,
    beat,
    by_id,
    join,
    leave,
    refused,
    told,
    topic_id,
)

REGEX = {"topic_names": None, "regex": "t[0-9]"}


def test_a_regex_is_looked_up_after_the_answer() -> None:
    """So the member gets its partitions with its second heartbeat."""
    play = Playbook(Topics(t1=1, t2=2, t=1, t10=1))
    play >> join("a", **REGEX) << told("a", 1, {})
    assert play.group.resolved["t[0-9]"].topics == {"t1", "t2"}
    assert play.state is ConsumerGroupState.ASSIGNING
    play >> beat("a", 1, {}) << told("a", 2, {"t1": [0], "t2": [0, 1]})


def test_members_of_one_regex_share_its_lookup() -> None:
    play = Playbook(Topics(t1=2))
    play >> join("a", **REGEX) << told("a", 1, {})
    play >> join("b", **REGEX)
    assert play.take().epoch == play.group.epoch == 3
    assert len(play.looked_up) == 1
    play.settle("a", "b")
    assert [len(play.owned(m)["t1"]) for m in "ab"] == [1, 1]


@pytest.mark.parametrize("regex", ["(", "a**", "(?=t)", r"\1"])
def test_what_is_no_regex_is_refused(regex: str) -> None:
    play = Playbook()
    play >> join("a", topic_names=None, regex=regex)
    play << refused("a", ErrorCode.INVALID_REGULAR_EXPRESSION)
    assert play.state is ConsumerGroupState.EMPTY


def test_the_refusal_of_a_regex_has_kafkas_words() -> None:
    play = Playbook()
    play >> join("a", topic_names=None, regex="t[")
    message = "SubscribedTopicRegex `t[` is not a valid regular expression: missing closing ]."
    play << Told("a", ConsumerResult, {"message": message})


@pytest.mark.timeout(10)
def test_a_regex_that_makes_backtracking_explode_is_looked_up_at_once() -> None:
    play = Playbook(Topics(**{"a" * 249: 1, "aaz": 1}))
    play >> join("a", topic_names=None, regex="(a+)+z") << told("a", 1, {})
    assert play.group.resolved["(a+)+z"].topics == {"aaz"}


def test_new_topics_are_found_no_sooner_than_ten_seconds_after_the_last_lookup() -> None:
    play = Playbook(Topics(t1=1), session_timeout_ms=10**9)
    play >> join("a", **REGEX) << told("a", 1, {})
    play >> beat("a", 1, {}) << told("a", 2, {"t1": [0]})
    play.topics.put("t2", 1)
    play.after(10_000) >> beat("a", 2) << told("a", 2)
    assert len(play.looked_up) == 1
    play.after(1) >> beat("a", 2) << told("a", 2)
    assert len(play.looked_up) == 2
    play >> beat("a", 2, {"t1": [0]}) << told("a", 3, {"t1": [0], "t2": [0]})


def test_without_new_topics_regexes_are_looked_up_now_and_then() -> None:
    play = Playbook(Topics(t1=1), session_timeout_ms=10**9, regex_refresh_interval_ms=60_000)
    play >> join("a", **REGEX) << told("a", 1, {})
    play >> beat("a", 1, {}) << told("a", 2, {"t1": [0]})
    play.after(60_000) >> beat("a", 2) << told("a", 2)
    assert len(play.looked_up) == 1
    play.after(1) >> beat("a", 2) << told("a", 2)
    assert len(play.looked_up) == 2
    assert play.group.epoch == 2


def test_a_regex_that_nobody_uses_any_more_is_forgotten() -> None:
    play = Playbook(Topics(t1=1, u=1))
    play >> join("a", **REGEX) << told("a", 1, {})
    play >> beat("a", 1, {}) << told("a", 2, {"t1": [0]})
    play >> beat("a", 2, {"t1": [0]}, topic_names=frozenset({"u"}), regex="")
    play << told("a", 2, {})
    assert RegexChange("t[0-9]", None) in play.stored
    assert (play.group.resolved, dict(play.group.regexes)) == ({}, {})
    play >> beat("a", 2, {}) << told("a", 3, {"u": [0]})


def test_a_member_may_subscribe_by_name_and_by_regex() -> None:
    play = Playbook(Topics(t1=1, u=1))
    play >> join("a", "u", regex="t[0-9]") << told("a", 2, {"u": [0]})
    play >> beat("a", 2, {"u": [0]}) << told("a", 3, {"u": [0], "t1": [0]})
    assert play.group.is_subscribed("t1")
    assert play.group.is_subscribed("u")
    assert not play.group.is_subscribed("other")


def test_a_topic_that_nobody_subscribes_to_any_more_raises_no_epoch() -> None:
    play = Playbook(Topics(t=1, u=1))
    play >> join("a", "t") << told("a", 2, {"t": [0]})
    play >> beat("a", 2, {"t": [0]}, topic_names=frozenset({"u"})) << told("a", 2, {})
    play >> beat("a", 2, {}) << told("a", 3, {"u": [0]})
    play.topics.put("t", 2)
    play >> beat("a", 3) << told("a", 3)
    play.topics.put("u", 2)
    play >> beat("a", 3, {"u": [0]}) << told("a", 4, {"u": [0, 1]})


def test_a_member_without_its_former_regex_keeps_the_topics_that_it_names() -> None:
    """What becomes of the others concerns the group no longer."""
    play = Playbook(Topics(t1=1, u=1))
    play >> join("a", "u", regex="t1") << told("a", 2, {"u": [0]})
    play >> beat("a", 2, {"u": [0]}) << told("a", 3, {"t1": [0], "u": [0]})
    play >> beat("a", 3, {"t1": [0], "u": [0]}, regex="") << told("a", 3, {"u": [0]})
    play >> beat("a", 3, {"u": [0]}) << told("a", 4)
    play.topics.put("t1", 2)
    play >> beat("a", 4) << told("a", 4)
    assert play.group.epoch == 4


def test_a_regex_of_topics_that_others_name_takes_its_member_into_account() -> None:
    play = Playbook(Topics(t1=2)).stable("a", topics=("t1",))
    play >> join("b", topic_names=None, regex="t1")
    play.take()
    play.settle("a", "b")
    assert [len(play.owned(member)["t1"]) for member in "ab"] == [1, 1]


def test_a_regex_that_a_member_gives_up_is_looked_up_no_more() -> None:
    play = Playbook(Topics(t1=1, t2=1), session_timeout_ms=10**9)
    play >> join("a", topic_names=None, regex="t1") << told("a", 1, {})
    play.after(10_001) >> join("b", topic_names=None, regex="t2")
    play.take()
    play.after(10_001) >> beat("b", play.epoch("b"), regex="t1")
    play.take()
    assert [each.regexes for each in play.looked_up] == [{"t1"}, {"t1", "t2"}, {"t1"}]


def test_a_member_gives_up_the_topics_of_its_former_regex_at_once() -> None:
    """Those of the new one are not known yet."""
    play = Playbook(Topics(t1=1, t2=1))
    play >> join("a", topic_names=None, regex="t1") << told("a", 1, {})
    play >> beat("a", 1, {}) << told("a", 2, {"t1": [0]})
    play >> beat("a", 2, {"t1": [0]}, regex="t2") << told("a", 2, {})


def test_a_regex_that_was_not_looked_up_keeps_its_topics() -> None:
    """Another one is looked up even if the member that wants it could not be stored."""
    play = Playbook(Topics(t1=1))
    play >> join("a", **REGEX) << told("a", 1, {})
    epoch, stored = play.group.epoch, len(play.stored)
    play >> RegexesResolved({"other": frozenset({"t1"})}, play.topics.version, play.now_ms)
    assert (play.group.epoch, len(play.stored)) == (epoch, stored)
    assert play.group.is_subscribed("t1")


@pytest.mark.parametrize(
    ("fields", "full"),
    [
        ({"topic_names": frozenset({"t"})}, True),
        ({"regex": ""}, True),
        ({}, False),
        ({"topic_names": frozenset({"t"}), "reported": None}, False),
        ({"topic_names": frozenset({"t"}), "rebalance_timeout_ms": None}, False),
    ],
)
def test_a_heartbeat_with_all_fields_is_answered_with_the_assignment(
    fields: dict[str, Any], *, full: bool
) -> None:
    """Of topics and regex, one is enough."""
    play = Playbook(Topics(t=1)).stable("a")
    values: dict[str, Any] = {
        "reported": by_id({"t": [0]}),
        "rebalance_timeout_ms": REBALANCE_MS,
    } | fields
    play >> beat("a", 2, **values) << told("a", 2, {"t": [0]} if full else None)


def test_a_change_of_a_topic_is_not_lost_with_a_heartbeat_that_is_refused() -> None:
    play = Playbook().stable("a", "b")
    epoch = play.group.epoch
    strange = CurrentAssignment(epoch, epoch - 1, MemberState.UNKNOWN, {topic_id("t"): {0: 3}}, {})
    play.group.apply([CurrentAssignmentChange("a", strange)])
    play.topics.put("t", 5)
    play >> beat("a", epoch, {"t": [0]}) << refused("a", ErrorCode.FENCED_MEMBER_EPOCH)
    assert play.group.epoch == epoch
    play >> beat("b", epoch)
    play.take()
    assert play.group.epoch == epoch + 1


# ------------------------------------------------------------------------------------ assignors


def test_the_first_assignment_does_not_wait_for_the_interval() -> None:
    play = Playbook(Topics(t=1), assignment_interval_ms=10**9, session_timeout_ms=10**10)
    play >> join("a", "t") << told("a", 2, {"t": [0]})
    play >> join("b", "t") << told("b", 2, {})
    play.after(10**9) >> beat("b", 2) << told("b", 3)


def test_the_first_assignor_of_the_brokers_is_the_default() -> None:
    play = Playbook(assignors=("range", "uniform"))
    assert play.group.preferred_assignor() == "range"


@pytest.mark.parametrize(
    ("assignors", "expected"),
    [(("range", "uniform"), [0, 2]), (("uniform", "range"), [1, 1])],
)
def test_the_default_assignor_decides_if_no_member_has_chosen(
    assignors: tuple[str, str], expected: list[int]
) -> None:
    play = Playbook(Topics(t=1, u=1), assignors=assignors).stable("a", "b", topics=("t", "u"))
    assert sorted(sum(map(len, play.owned(m).values())) for m in "ab") == expected


def test_the_majority_chooses_the_assignor() -> None:
    play = Playbook()
    for member, assignor in (("a", "range"), ("b", "uniform"), ("c", "range")):
        play >> join(member, "t", assignor=assignor)
        play.take()
    assert play.group.preferred_assignor() == "range"
    play.settle("a", "b", "c")
    assert [play.owned(m)["t"] for m in "abc"] == [[0, 1], [2], [3]]
    play >> leave("a")
    play.take()
    play.settle("b", "c")
    assert sorted(len(play.owned(m)["t"]) for m in "bc") == [2, 2]


def test_another_assignor_decides_with_the_next_target() -> None:
    """To choose one raises no epoch by itself."""
    play = Playbook().stable("a", "b")
    epoch = play.group.epoch
    play >> beat("a", epoch, assignor="range") << told("a", epoch)
    assert play.group.epoch == epoch
    assert play.group.preferred_assignor() == "range"


@pytest.mark.parametrize("former", ["range", "uniform"])
def test_a_member_that_chooses_another_assignor_no_longer_counts_for_its_former_one(
    former: str,
) -> None:
    """It decides the target that its own heartbeat makes necessary."""
    chosen = "uniform" if former == "range" else "range"
    play = Playbook(Topics(t=4, u=1))
    for member, assignor in (("a", former), ("b", former), ("c", chosen)):
        play >> join(member, "t", assignor=assignor)
        play.take()
    play.settle("a", "b", "c")
    play >> beat("a", play.group.epoch, topic_names=frozenset({"t", "u"}), assignor=chosen)
    play.take()
    play.settle("a", "b", "c")
    counts = [sum(map(len, play.owned(member).values())) for member in "abc"]
    assert sorted(counts) == ([1, 2, 2] if chosen == "uniform" else [1, 1, 3])
