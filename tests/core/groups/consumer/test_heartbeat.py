"""Regexes and assignors of consumer groups: when they are looked up, who decides."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer.events import RegexChange
from mockbroker.core.groups.consumer.states import ConsumerGroupState
from mockbroker.core.groups.events import ConsumerResult
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import (
    Playbook,
    Told,
    Topics,
    beat,
    join,
    leave,
    refused,
    told,
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


# ------------------------------------------------------------------------------------ assignors


def test_the_first_assignor_of_the_brokers_is_the_default() -> None:
    play = Playbook(assignors=("range", "uniform"))
    assert play.group.preferred_assignor() == "range"


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
