"""Who leads, who is waited for, and which protocol wins."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.classic import ClassicGroup, ClassicGroupSettings
from mockbroker.core.groups.lazy_timers import LazyTimer
from mockbroker.core.groups.members import Member


def member(name: str, *protocols: str, instance: str | None = None) -> Member:
    offers = tuple((protocol, protocol.encode()) for protocol in protocols or ("range",))
    return Member(name, instance, "client", "/host", 60_000, 10_000, offers)


def group_of(*members: Member) -> ClassicGroup:
    found = ClassicGroup("g", ClassicGroupSettings(), 0)
    for each in members:
        found.add_member(each, "consumer")
    return found


def test_the_first_member_leads_and_the_longest_standing_one_follows_it() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    assert group.leader == "a"
    group.remove_member(group.members["a"])
    assert group.leader == "b"
    group.remove_member(group.members["c"])
    assert group.leader == "b"
    group.remove_member(group.members["b"])
    assert group.leader is None


def test_a_leader_that_has_not_joined_hands_over_to_one_that_has() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    assert not group.elect_joined_leader()
    group.park_join(group.members["c"], "callback")
    assert group.elect_joined_leader()
    assert group.leader == "c"
    group.park_join(group.members["a"], "callback")
    assert group.elect_joined_leader()
    assert group.leader == "c"


def test_everybody_has_joined_when_each_waits_and_no_id_is_outstanding() -> None:
    group = group_of(member("a"), member("b"))
    group.park_join(group.members["a"], 1)
    assert not group.has_all_members_joined()
    assert group.park_join(group.members["a"], 2) == 1
    assert not group.has_all_members_joined()
    group.park_join(group.members["b"], 3)
    assert group.has_all_members_joined()
    group.pending_join_members["c"] = LazyTimer("c")
    assert not group.has_all_members_joined()
    del group.pending_join_members["c"]
    assert group.take_join_callback(group.members["a"]) == 2
    assert group.take_join_callback(group.members["a"]) is None
    group.remove_member(group.members["a"])
    assert group.has_all_members_joined()


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        ([("range",)], "range"),
        ([("range", "cooperative-sticky")], "range"),
        ([("range", "sticky"), ("sticky", "range"), ("sticky", "range")], "sticky"),
        # Each votes for the first of its own list among what all support.
        ([("new", "range", "sticky"), ("sticky", "range"), ("new", "sticky", "range")], "sticky"),
        ([("a", "x"), ("b", "x"), ("c", "x")], "x"),
        # Equal votes: the one voted for first.
        ([("range", "sticky"), ("sticky", "range")], "range"),
    ],
)
def test_the_vote(offers: list[tuple[str, ...]], chosen: str) -> None:
    group = group_of(*(member(str(i), *names) for i, names in enumerate(offers)))
    assert group.select_protocol() == chosen


def test_a_member_fits_in_if_one_of_its_protocols_is_supported_by_all() -> None:
    group = group_of(member("a", "range", "sticky"), member("b", "sticky"))
    assert group.supports_protocols("consumer", ["sticky"])
    assert not group.supports_protocols("consumer", ["range"])
    assert not group.supports_protocols("connect", ["sticky"])
    group.remove_member(group.members["b"])
    assert group.supports_protocols("consumer", ["range"])
    group.update_member(group.members["a"], (("other", b""),), 1, 1)
    assert not group.supports_protocols("consumer", ["range", "sticky"])
    assert group.supports_protocols("consumer", ["other"])


def test_the_group_waits_for_its_slowest_member() -> None:
    group = group_of(member("a"), member("b"))
    group.update_member(group.members["b"], group.members["b"].protocols, 90_000, 5)
    assert group.rebalance_timeout_ms() == 90_000
    assert group_of().rebalance_timeout_ms() == 0


def test_a_static_member_keeps_its_place_and_its_lead_under_a_new_id() -> None:
    group = group_of(member("a", instance="i"), member("b"))
    group.members["a"].assignment = b"part"
    new = group.replace_static_member(group.members["a"], "a2")
    assert new.assignment == b"part"
    assert group.leader == "a2"
    assert group.static_members == {"i": "a2"}
    assert "a" not in group.members


def test_the_list_for_the_leader_has_what_each_member_sent_with_the_protocol() -> None:
    group = group_of(member("a", "x", "range"), member("b", "range", instance="i"))
    assert [(m.member_id, m.instance_id, m.metadata) for m in group.joined_members("range")] == [
        ("a", None, b"range"),
        ("b", "i", b"range"),
    ]
    with pytest.raises(KeyError):
        group.members["b"].metadata("x")
