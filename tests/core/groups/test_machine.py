"""Joining and leaving a classic group: every row of the tables for JoinGroup and LeaveGroup."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.groups.events import (
    Delete,
    JoinedMember,
    Leaver,
    LeftMember,
    Persisted,
    Protocols,
    Rebalance,
)
from mockbroker.core.groups.states import ClassicGroupState
from mockbroker_protocol import ErrorCode
from tests.support.group_playbook import (
    SESSION_MS,
    Playbook,
    beat,
    beaten,
    join,
    joined,
    leave,
    left,
    sync,
    synced,
)

E = ErrorCode
OTHER: Protocols = (("range", b"other"),)
FIVE_MINUTES_MS = 300_000


# ---------------------------------------------------------------------------------- a new member


def test_a_dynamic_member_comes_back_with_the_id_it_was_given() -> None:
    """79 with an id, then in: since v4."""
    play = Playbook()
    play >> join("a") << joined("a", E.MEMBER_ID_REQUIRED, member_id="a", generation=-1, leader="")
    assert play.state is ClassicGroupState.EMPTY
    play >> join("a1", "a")
    play << joined(
        "a1",
        member_id="a",
        generation=1,
        leader="a",
        protocol_type="consumer",
        protocol_name="range",
        members=(JoinedMember("a", None, b"topics"),),
        skip_assignment=False,
    )
    play.done()


def test_before_v4_a_dynamic_member_is_in_at_once() -> None:
    play = Playbook()
    play >> join("a", member_id_required=False) << joined("a", member_id="a", generation=1)


def test_a_static_member_is_in_at_once() -> None:
    play = Playbook()
    play >> join("a", instance_id="i") << joined("a", member_id="a", generation=1)
    assert play.group.static_members == {"i": "a"}


def test_an_id_given_out_is_forgotten_after_a_session_timeout() -> None:
    play = Playbook()
    play >> join("a") << joined("a", E.MEMBER_ID_REQUIRED)
    play.after(SESSION_MS)
    play >> join("a1", "a") << joined("a1", E.UNKNOWN_MEMBER_ID, member_id="a")


def test_a_round_waits_for_ids_given_out() -> None:
    """Whoever was sent back with an id is about to come: the round does not end without it."""
    play = Playbook().stable("a")
    play >> join("b") << joined("b", E.MEMBER_ID_REQUIRED)
    play >> join("a1", "a", protocols=OTHER)
    assert play.state is ClassicGroupState.PREPARING
    play >> join("b1", "b") << joined("a1", generation=2) << joined("b1", generation=2)


def test_a_round_ends_when_an_id_given_out_is_not_used_in_time() -> None:
    play = Playbook().stable("a")
    play >> join("b", session_timeout_ms=6_000) << joined("b", E.MEMBER_ID_REQUIRED)
    play >> join("a1", "a", protocols=OTHER)
    play.after(6_000) << joined("a1", generation=2)


def test_an_instance_id_does_not_go_with_an_id_given_out() -> None:
    """Ids are only given to dynamic members; Kafka's coordinator fails on this one."""
    play = Playbook()
    play >> join("a") << joined("a", E.MEMBER_ID_REQUIRED)
    play >> join("a1", "a", instance_id="i") << joined("a1", E.UNKNOWN_SERVER_ERROR, member_id="")


@pytest.mark.parametrize(
    "offer",
    [
        {"protocol_type": ""},
        {"protocols": ()},
    ],
)
def test_an_empty_group_takes_any_protocol_but_none(offer: dict[str, Any]) -> None:
    play = Playbook()
    play >> join("a", **offer) << joined("a", E.INCONSISTENT_GROUP_PROTOCOL, member_id="")
    play >> join("b", protocol_type="connect") << joined("b", E.MEMBER_ID_REQUIRED)


@pytest.mark.parametrize("member_id", ["", "a"])
@pytest.mark.parametrize(
    "offer",
    [
        {"protocol_type": "connect"},
        {"protocols": (("roundrobin", b""),)},
        {"protocols": ()},
    ],
)
def test_who_shares_no_protocol_with_all_members_is_refused(
    offer: dict[str, Any], member_id: str
) -> None:
    play = Playbook().stable("a", "b")
    play >> join("x", member_id, **offer)
    play << joined("x", E.INCONSISTENT_GROUP_PROTOCOL, member_id=member_id)
    assert play.state is ClassicGroupState.STABLE


@pytest.mark.parametrize("member_id", ["", "a"])
def test_a_dead_group_refuses_everybody(member_id: str) -> None:
    play = Playbook()
    play >> Delete()
    play >> join("x", member_id) << joined("x", E.COORDINATOR_NOT_AVAILABLE, member_id=member_id)


# ------------------------------------------------------------------------------- a known member


def test_a_follower_with_nothing_new_is_told_the_current_generation() -> None:
    play = Playbook().stable("a", "b")
    play >> join("x", "b") << joined("x", generation=2, leader="a", members=())
    assert play.state is ClassicGroupState.STABLE


def test_a_follower_with_new_metadata_causes_a_rebalance() -> None:
    play = Playbook().stable("a", "b")
    play >> join("x", "b", protocols=OTHER)
    assert play.state is ClassicGroupState.PREPARING
    play >> beat("a", 2) << beaten("a", E.REBALANCE_IN_PROGRESS)
    play >> join("y", "a")
    play << joined(
        "y",
        generation=3,
        members=(JoinedMember("a", None, b"topics"), JoinedMember("b", None, b"other")),
    )
    play << joined("x", generation=3, members=())


def test_the_leader_of_a_stable_group_always_causes_a_rebalance() -> None:
    """It may have seen partitions come or topics go, which its metadata does not show."""
    play = Playbook().stable("a", "b")
    play >> join("x", "a")
    assert play.state is ClassicGroupState.PREPARING


def test_while_the_leader_assigns_the_answer_can_be_had_again() -> None:
    """A JoinGroup answer may get lost: asking again with the same metadata changes nothing."""
    play = Playbook().completing("a", "b")
    play >> join("x", "b") << joined("x", generation=2, leader="a", members=())
    play >> join("y", "a")
    play << joined(
        "y",
        generation=2,
        members=(JoinedMember("a", None, b"topics"), JoinedMember("b", None, b"topics")),
    )
    assert play.state is ClassicGroupState.COMPLETING


def test_new_metadata_while_the_leader_assigns_starts_over() -> None:
    """Whoever waits in SyncGroup hears of it there."""
    play = Playbook().completing("a", "b")
    play >> sync("b", 2)
    play >> join("x", "a", protocols=OTHER) << synced("b", E.REBALANCE_IN_PROGRESS, assignment=b"")
    assert play.state is ClassicGroupState.PREPARING


def test_a_member_of_an_empty_group_is_unknown() -> None:
    play = Playbook().stable("a")
    play >> leave("x", "a")
    play.take_all()
    play >> join("x", "a") << joined("x", E.UNKNOWN_MEMBER_ID, member_id="a")


def test_a_repeated_join_takes_the_place_of_the_parked_one() -> None:
    play = Playbook().stable("a", "b")
    play >> join("x", "b", protocols=OTHER)
    play >> join("y", "b", protocols=OTHER) << joined("x", E.REBALANCE_IN_PROGRESS)
    play >> join("z", "a") << joined("z", generation=3) << joined("y", generation=3)


# ------------------------------------------------------------------------------- how many may join


def test_a_full_group_refuses_new_members_only() -> None:
    play = Playbook(size_max=2).stable("a", "b")
    play >> join("c") << joined("c", E.GROUP_MAX_SIZE_REACHED, member_id="")
    play >> join("x", "a")
    assert play.state is ClassicGroupState.PREPARING


def test_while_a_round_forms_the_places_are_taken_by_those_who_wait() -> None:
    play = Playbook(size_max=2).stable("a", "b")
    play >> join("a1", "a")
    play >> join("c", member_id_required=False)
    (
        play >> join("a2", "a") << joined("a1", E.REBALANCE_IN_PROGRESS)
    )  # waits already: keeps its place
    play >> join("b1", "b") << joined("b1", E.GROUP_MAX_SIZE_REACHED, member_id="")
    assert set(play.group.members) == {"a", "c"}


# --------------------------------------------------------------------------------- static members


def static() -> Playbook:
    """A Stable group of static members: "a" (instance "one") leads, "b" ("two") follows."""
    play = Playbook()
    play >> join("a", instance_id="one") << joined("a", generation=1)
    play >> join("b", instance_id="two")
    play >> join("x", "a", instance_id="one") << joined("x", generation=2)
    play << joined("b", generation=2)
    play >> sync("b", 2)
    play >> sync("a", 2, assignments={"a": b"A", "b": b"B"}) << synced("a") << synced("b")
    return play


def test_a_returning_static_follower_gets_its_assignment_without_a_rebalance() -> None:
    play = static()
    play >> join("b2", instance_id="two")
    play << joined("b2", member_id="b2", generation=2, leader="a", members=())
    play >> sync("b2", 2, instance_id="two") << synced("b2", assignment=b"B")
    assert play.state is ClassicGroupState.STABLE
    assert [m.member_id for m in play.stored[-1].image.members] == ["a", "b2"]
    play >> beat("b", 2, instance_id="two") << beaten("b", E.FENCED_INSTANCE_ID)


def test_a_returning_static_leader_is_told_not_to_assign() -> None:
    """Since v9: it leads, sees all members, and skips the assignment (KIP-814)."""
    play = static()
    play >> join("a2", instance_id="one")
    play << joined(
        "a2",
        member_id="a2",
        generation=2,
        leader="a2",
        skip_assignment=True,
        members=(JoinedMember("b", "two", b"topics"), JoinedMember("a2", "one", b"topics")),
    )
    assert play.group.leader == "a2"


def test_before_v9_a_returning_static_leader_takes_itself_for_a_follower() -> None:
    """The leader field names its former id, and there is no member list."""
    play = static()
    play >> join("a2", instance_id="one", skip_assignment=False)
    play << joined("a2", member_id="a2", leader="a", skip_assignment=False, members=())
    play >> sync("a2", 2, instance_id="one") << synced("a2", assignment=b"A")


def test_before_v9_a_returning_static_follower_is_told_the_leader() -> None:
    play = static()
    play >> join("b2", instance_id="two", skip_assignment=False)
    play << joined("b2", member_id="b2", leader="a", members=())


def test_a_returning_static_member_that_changes_the_protocol_causes_a_rebalance() -> None:
    play = Playbook()
    offers: Protocols = (("range", b""), ("sticky", b""))
    play >> join("a", instance_id="one", protocols=offers) << joined("a", protocol_name="range")
    play >> sync("a", 1, assignments={"a": b"A"}) << synced("a")
    play >> join("a2", instance_id="one", protocols=(("sticky", b""),))
    play << joined("a2", generation=2, protocol_name="sticky", leader="a2")


def test_a_returning_static_member_fences_its_former_self_in_join_group() -> None:
    play = static()
    play >> join("b1", "b", instance_id="two", protocols=OTHER)
    assert play.state is ClassicGroupState.PREPARING
    play >> join("b2", instance_id="two")
    play << joined("b1", E.FENCED_INSTANCE_ID, member_id="b", leader="", members=())
    play >> join("a1", "a", instance_id="one") << joined("a1", generation=3)
    play << joined("b2", member_id="b2", generation=3)


def test_a_returning_static_member_ends_the_round_that_waited_for_it_alone() -> None:
    play = static()
    play >> join("a1", "a", instance_id="one", protocols=OTHER)
    assert play.state is ClassicGroupState.PREPARING
    play >> join("b2", instance_id="two")
    play << joined("a1", generation=3) << joined("b2", member_id="b2", generation=3)
    assert play.state is ClassicGroupState.COMPLETING


def test_a_returning_static_member_fences_its_former_self_in_sync_group() -> None:
    """While the leader assigns, everything starts over: the assignment would name the old id."""
    play = Playbook()
    play >> join("a", instance_id="one") << joined("a", generation=1)
    play >> join("b", instance_id="two")
    play >> join("a1", "a", instance_id="one") << joined("a1") << joined("b", generation=2)
    play >> sync("b", 2)
    play >> join("b2", instance_id="two") << synced("b", E.FENCED_INSTANCE_ID)
    assert play.state is ClassicGroupState.PREPARING
    play >> join("a2", "a", instance_id="one") << joined("a2", generation=3)
    play << joined("b2", generation=3)


def test_a_session_that_ends_while_the_new_id_is_stored_begins_with_the_answer() -> None:
    """Nobody sends heartbeats while it waits for JoinGroup; afterwards somebody has to."""
    play = static()
    play >> beat("a", 2, instance_id="one") << beaten("a")
    play.storing = False
    play >> join("b2", instance_id="two")
    play.after(SESSION_MS - 1) >> beat("a", 2, instance_id="one") << beaten("a")
    play.after(1) >> Persisted(play.stored[-1], E.NONE)
    play << joined("b2", member_id="b2", generation=2)
    play.after(SESSION_MS - 2) >> beat("a", 2, instance_id="one") << beaten("a")
    play.after(1)
    assert "b2" in play.group.members
    play.after(1)
    assert "b2" not in play.group.members


def test_a_returning_static_member_keeps_its_old_id_if_the_new_one_cannot_be_stored() -> None:
    play = static()
    play.storing = False
    play >> join("b2", instance_id="two", protocols=OTHER)
    play >> Persisted(play.stored[-1], E.COORDINATOR_NOT_AVAILABLE)
    play << joined("b2", E.COORDINATOR_NOT_AVAILABLE, member_id="")
    assert play.group.static_members["two"] == "b"
    assert play.group.members["b"].protocols == (("range", b"topics"),)
    play >> beat("b", 2, instance_id="two") << beaten("b")


def test_a_rebalance_that_overtakes_the_storing_of_a_new_id_answers_its_join() -> None:
    play = static()
    play.storing = False
    play >> join("b2", instance_id="two")
    play >> join("a2", "a", instance_id="one") << joined("a2", generation=3)
    play << joined("b2", generation=3)
    play >> Persisted(play.stored[-1], E.NONE)
    play.done()


def test_a_rebalance_that_overtakes_the_storing_of_a_new_id_waits_for_the_others() -> None:
    """Also for a member that has joined again by then."""
    play = static()
    play.storing = False
    play >> join("b2", instance_id="two")
    play >> Rebalance("test") >> Persisted(play.stored[-1], E.NONE)
    play.done()
    play >> join("a2", "a", instance_id="one") << joined("a2", generation=3)
    play << joined("b2", generation=3)


def test_a_static_member_that_misses_the_round_stays_until_its_session_ends() -> None:
    play = static()
    play >> join("a1", "a", instance_id="one")
    play.after(SESSION_MS - 1)
    assert set(play.group.members) == {"a", "b"}
    play.after(1) << joined("a1", generation=3)
    assert set(play.group.members) == {"a"}


# ---------------------------------------------------------------------------------------- leaving


def test_members_that_leave_cause_a_rebalance() -> None:
    play = Playbook().stable("a", "b", "c")
    play >> leave("x", "b") << left("x", members=(LeftMember("b", None, E.NONE),))
    assert play.state is ClassicGroupState.PREPARING
    play >> join("c1", "c")
    play >> join("a1", "a") << joined("a1", generation=3) << joined("c1", generation=3)


def test_the_last_member_to_leave_leaves_an_empty_group_of_the_next_generation() -> None:
    play = Playbook().stable("a", "b")
    play >> leave("x", "a", "b")
    play << left("x", members=(LeftMember("a", None, E.NONE), LeftMember("b", None, E.NONE)))
    assert (play.state, play.group.generation) == (ClassicGroupState.EMPTY, 3)
    image = play.stored[-1].image
    assert (image.protocol_type, image.protocol, image.leader, image.members) == (
        "consumer",
        None,
        None,
        (),
    )


def test_one_who_cannot_leave_does_not_keep_others_from_it() -> None:
    play = Playbook().stable("a", "b")
    play >> leave("x", "ghost", "b")
    play << left(
        "x", members=(LeftMember("ghost", None, E.UNKNOWN_MEMBER_ID), LeftMember("b", None, E.NONE))
    )
    assert play.state is ClassicGroupState.PREPARING
    play = Playbook().stable("a")
    play >> leave("x", "ghost")
    play << left("x", members=(LeftMember("ghost", None, E.UNKNOWN_MEMBER_ID),))
    assert play.state is ClassicGroupState.STABLE


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    play = Playbook().stable("a", "b")
    play >> join("b1", "b", protocols=OTHER)
    play >> leave("x", "b") << joined("b1", E.UNKNOWN_MEMBER_ID, member_id="")
    play << left("x", members=(LeftMember("b", None, E.NONE),))
    play = Playbook().completing("a", "b")
    play >> sync("b", 2)
    play >> leave("x", "b") << synced("b", E.UNKNOWN_MEMBER_ID)
    play << left("x", members=(LeftMember("b", None, E.NONE),))


def test_the_last_one_missing_may_end_the_round_by_leaving() -> None:
    play = Playbook().stable("a", "b")
    play >> join("a1", "a")
    play >> leave("x", "b") << left("x") << joined("a1", generation=3)


def test_an_id_given_out_may_leave() -> None:
    play = Playbook().stable("a")
    play >> join("b") << joined("b", E.MEMBER_ID_REQUIRED)
    play >> join("a1", "a")
    play >> leave("x", "b") << left("x", members=(LeftMember("b", None, E.NONE),))
    play << joined("a1", generation=2)


def test_an_administrator_removes_static_members_by_instance_id() -> None:
    play = static()
    play >> leave("x", Leaver("", "two"), Leaver("", "three"), Leaver("", None))
    play << left(
        "x",
        members=(
            LeftMember("", "two", E.NONE),
            LeftMember("", "three", E.UNKNOWN_MEMBER_ID),
            LeftMember("", None, E.UNKNOWN_MEMBER_ID),
        ),
    )
    assert set(play.group.members) == {"a"}
    assert play.state is ClassicGroupState.PREPARING


def test_a_fenced_instance_cannot_make_its_successor_leave() -> None:
    play = static()
    play >> join("b2", instance_id="two") << joined("b2")
    play >> leave("x", Leaver("b", "two"))
    play << left("x", members=(LeftMember("b", "two", E.FENCED_INSTANCE_ID),))


# ---------------------------------------------------------------------------------- the first join


def test_a_member_in_its_first_join_is_given_up_after_five_minutes() -> None:
    """Its session does not run while it waits; a client that died there would block the others."""
    slow = FIVE_MINUTES_MS * 2
    play = Playbook().stable("a", session_timeout_ms=slow, rebalance_timeout_ms=slow)
    play >> join("b", member_id_required=False, session_timeout_ms=SESSION_MS)
    play.after(FIVE_MINUTES_MS - 1)
    play.done()
    play.after(1) << joined("b", E.UNKNOWN_MEMBER_ID, member_id="")
    assert set(play.group.members) == {"a"}


def test_a_member_that_waits_for_a_later_round_is_not_given_up() -> None:
    slow = FIVE_MINUTES_MS * 2
    play = Playbook().stable("a", "b", rebalance_timeout_ms=slow)
    play >> join("b1", "b", protocols=OTHER, rebalance_timeout_ms=slow)
    for _ in range(60):
        play.after(SESSION_MS - 1)
        play >> beat("a", 2) << beaten("a", E.REBALANCE_IN_PROGRESS)
    assert set(play.group.members) == {"a", "b"}


def test_generations_count_up_by_one() -> None:
    play = Playbook()
    play >> join("a", instance_id="i") << joined("a", generation=1)
    for generation in range(2, 14):
        play >> sync("a", generation - 1, assignments={"a": b""}) << synced("a")
        play >> join("a", "a") << joined("a", generation=generation)
