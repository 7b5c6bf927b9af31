"""The rounds of a classic group: who is waited for, for how long, and what the leader hands in."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.groups.events import Leaver, Moved, Persisted, Protocols, Rebalance, Tick
from mockbroker.core.groups.states import ClassicGroupState
from mockbroker_protocol import ErrorCode
from tests.support.group_playbook import (
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    beat,
    beaten,
    join,
    joined,
    leave,
    sync,
    synced,
)

E = ErrorCode
OTHER: Protocols = (("range", b"other"),)


# ----------------------------------------------------------------------------------- the join phase


def test_one_round_from_empty_to_stable() -> None:
    play = Playbook()
    play >> join("a", member_id_required=False) << joined("a", generation=1)
    play >> sync("a", 1, assignments={"a": b"all"}) << synced("a", assignment=b"all")
    assert [(m.previous, m.state, m.generation) for m in play.moves] == [
        (ClassicGroupState.EMPTY, ClassicGroupState.PREPARING, 0),
        (ClassicGroupState.PREPARING, ClassicGroupState.COMPLETING, 1),
        (ClassicGroupState.COMPLETING, ClassicGroupState.STABLE, 1),
    ]


def test_an_initial_rebalance_waits_for_its_delay() -> None:
    """group.initial.rebalance.delay.ms: members that start together are to share one generation."""
    play = Playbook(initial_rebalance_delay_ms=3_000)
    play >> join("a", member_id_required=False)
    play.after(2_999)
    play.done()
    play.after(1) << joined("a", generation=1)


def test_each_newcomer_prolongs_the_initial_delay_up_to_the_rebalance_timeout() -> None:
    timeouts = {"rebalance_timeout_ms": 8_000, "member_id_required": False}
    play = Playbook(initial_rebalance_delay_ms=3_000)
    play >> join("a", **timeouts)
    play.after(1_000)
    play >> join("b", **timeouts)
    play.after(2_000)  # at 3 s: somebody came, wait for another 3 s
    play.after(1_000)
    play >> join("c", **timeouts)
    play.after(2_000)  # at 6 s: 2 s are left of 8
    play.after(1_000)
    play >> join("d", **timeouts)
    play.done()
    play.after(1_000) << joined("a", generation=1) << joined("b") << joined("c") << joined("d")
    assert play.state is ClassicGroupState.COMPLETING


def test_nobody_new_ends_the_initial_delay_even_if_time_is_left() -> None:
    play = Playbook(initial_rebalance_delay_ms=3_000)
    play >> join("a", member_id_required=False)
    play.after(1_000)
    play >> join("b", member_id_required=False)
    play.after(2_000)
    play.done()
    play.after(3_000) << joined("a") << joined("b")


def test_an_initial_rebalance_is_not_ended_by_everybody_being_there() -> None:
    play = Playbook(initial_rebalance_delay_ms=3_000)
    play >> join("a", member_id_required=False)
    play >> join("b") << joined("b", E.MEMBER_ID_REQUIRED)
    play >> join("b1", "b")
    play.done()


def test_who_does_not_come_back_in_time_is_out() -> None:
    """A dynamic member that heartbeats but does not join; the slowest member sets the time."""
    play = Playbook().stable("a", "b", session_timeout_ms=REBALANCE_MS)
    play >> join("c", member_id_required=False, rebalance_timeout_ms=2 * REBALANCE_MS)
    play >> join("a1", "a")
    play.after(REBALANCE_MS - 1)
    play >> beat("b", 2) << beaten("b", E.REBALANCE_IN_PROGRESS)
    play.after(REBALANCE_MS + 1) << joined("a1", generation=3) << joined("c", generation=3)
    play >> beat("b", 2) << beaten("b", E.UNKNOWN_MEMBER_ID)


def test_a_leader_that_does_not_come_back_is_replaced() -> None:
    play = Playbook().stable("a", "b", "c")
    play >> join("c1", "c", protocols=OTHER)
    play >> join("b1", "b")
    play.after(SESSION_MS) << joined("b1", leader="b") << joined("c1", leader="b", members=())


def test_a_group_of_absent_static_members_goes_on_waiting() -> None:
    """Nobody joined, nobody may be dropped: no generation, no answer, until a session ends."""
    long = {"session_timeout_ms": 5 * REBALANCE_MS, "instance_id": "i"}
    play = Playbook()
    play >> join("a", **long) << joined("a", generation=1)
    play >> sync("a", 1, assignments={}) << synced("a")
    play >> join("b", member_id_required=False, session_timeout_ms=SESSION_MS)
    play >> leave("x", Leaver("b"))
    play.take_all()
    play.after(3 * REBALANCE_MS)
    assert (play.state, play.group.generation) == (ClassicGroupState.PREPARING, 1)
    play >> join("a1", "a", instance_id="i") << joined("a1", generation=2)


@pytest.mark.parametrize("rebalance_timeout_ms", [0, -1])
def test_a_rebalance_timeout_of_nothing_does_not_spin(rebalance_timeout_ms: int) -> None:
    timeouts = {"rebalance_timeout_ms": rebalance_timeout_ms, "instance_id": "i"}
    play = Playbook()
    play >> join("a", **timeouts) << joined("a")
    play >> sync("a", 1, assignments={}) << synced("a")
    play >> join("b", member_id_required=False, rebalance_timeout_ms=rebalance_timeout_ms)
    play >> leave("x", Leaver("b"))
    play.take_all()
    play.after(20)
    assert play.state is ClassicGroupState.PREPARING


@pytest.mark.parametrize(("rebalance_timeout_ms", "then_ms"), [(REBALANCE_MS, 0), (0, 2)])
def test_a_static_member_that_comes_back_waits_for_the_others_for_one_more_timeout(
    rebalance_timeout_ms: int, then_ms: int
) -> None:
    """Which lasts 1 ms at least."""
    timeouts: dict[str, Any] = {
        "session_timeout_ms": 5 * REBALANCE_MS,
        "rebalance_timeout_ms": rebalance_timeout_ms,
    }
    play = Playbook()
    play >> join("a", instance_id="i", **timeouts) << joined("a", generation=1)
    play >> join("b", instance_id="j", **timeouts)
    play >> join("a1", "a", instance_id="i", **timeouts)
    play << joined("a1", generation=2) << joined("b", generation=2)
    play >> Rebalance("test")
    play.after(rebalance_timeout_ms + then_ms)
    assert (play.state, play.group.generation) == (ClassicGroupState.PREPARING, 2)
    play >> join("a2", "a", instance_id="i", **timeouts)
    play.done()
    play.after(max(rebalance_timeout_ms, 1)) << joined("a2", generation=3)


def test_sessions_run_while_a_round_waits_for_somebody_else() -> None:
    """Whoever neither waits nor is heard of is out after its session, before the timeout."""
    play = Playbook().stable("a", "b")
    play >> join("a1", "a")
    play.after(SESSION_MS) << joined("a1", generation=3)
    assert set(play.group.members) == {"a"}


def test_a_cooperative_handover_takes_two_rounds() -> None:
    """KIP-429 is the clients' affair: a member that gave partitions up joins again (S220)."""
    coop: Protocols = (("cooperative-sticky", b"owns 0,1"),)
    play = Playbook().stable("a", protocols=coop)
    play >> join("b", member_id_required=False, protocols=(("cooperative-sticky", b""),))
    play >> join("a1", "a", protocols=coop) << joined("a1", generation=2) << joined("b")
    play >> sync("b", 2)
    play >> sync("a", 2, assignments={"a": b"0", "b": b""})
    play << synced("a", assignment=b"0") << synced("b", assignment=b"")
    play >> join("a2", "a", protocols=(("cooperative-sticky", b"owns 0"),))
    play >> join("b2", "b", protocols=(("cooperative-sticky", b""),))
    play << joined("a2", generation=3, protocol_name="cooperative-sticky")
    play << joined("b2", generation=3)
    play >> sync("b", 3)
    play >> sync("a", 3, assignments={"a": b"0", "b": b"1"})
    play << synced("a", assignment=b"0") << synced("b", assignment=b"1")


# ----------------------------------------------------------------------------------- the sync phase


def test_followers_wait_for_the_leader_and_get_their_own_part() -> None:
    play = Playbook().completing("a", "b", "c")
    generation = play.group.generation
    play >> sync("c", generation)
    play >> sync("b", generation)
    play.done()
    play >> sync("a", generation, assignments={"a": b"A", "b": b"B", "ghost": b"G"})
    play << synced("a", assignment=b"A", protocol_type="consumer", protocol_name="range")
    play << synced("b", assignment=b"B") << synced("c", assignment=b"")
    stored = play.stored[-1]
    assert [(m.member_id, m.assignment) for m in stored.image.members] == [
        ("a", b"A"),
        ("b", b"B"),
        ("c", b""),
    ]


def test_an_assignment_may_be_asked_for_again() -> None:
    play = Playbook().stable("a", "b")
    play >> sync("b", 2) << synced("b", assignment=b"b")
    play.after(SESSION_MS - 1)
    assert play.state is ClassicGroupState.STABLE


def test_the_assignments_of_followers_are_ignored() -> None:
    play = Playbook().completing("a", "b")
    play >> sync("b", 2, assignments={"a": b"mine", "b": b"mine"})
    play.done()
    assert play.state is ClassicGroupState.COMPLETING


def test_a_protocol_other_than_the_chosen_one_is_refused() -> None:
    """Since v5 members say what they were told; what they do not say is not compared."""
    play = Playbook().completing("a")
    for wrong in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        play >> sync("a", 1, **wrong) << synced("a", E.INCONSISTENT_GROUP_PROTOCOL)
    play >> sync("a", 1, protocol_type="consumer", protocol_name="range") << synced("a")


def test_a_repeated_sync_takes_the_place_of_the_parked_one() -> None:
    play = Playbook().completing("a", "b")
    play >> sync("b", 2)
    play >> sync("b2", 2, member_id="b") << synced("b", E.REBALANCE_IN_PROGRESS)
    play >> sync("a", 2, assignments={}) << synced("a") << synced("b2")


def test_an_assignment_is_not_in_force_before_it_is_stored() -> None:
    play = Playbook().completing("a", "b")
    play.storing = False
    play >> sync("a", 2, assignments={"b": b"B"})
    assert play.state is ClassicGroupState.COMPLETING
    play >> sync("b", 2)
    play >> Persisted(play.stored[-1], E.NONE) << synced("a", assignment=b"")
    play << synced("b", assignment=b"B")
    assert play.state is ClassicGroupState.STABLE


def test_an_assignment_that_cannot_be_stored_is_an_error_for_all_and_a_new_round() -> None:
    play = Playbook().completing("a", "b")
    play.storing = False
    play >> sync("b", 2)
    play >> sync("a", 2, assignments={"b": b"B"})
    play >> Persisted(play.stored[-1], E.COORDINATOR_NOT_AVAILABLE)
    play << synced("a", E.COORDINATOR_NOT_AVAILABLE, assignment=b"")
    play << synced("b", E.COORDINATOR_NOT_AVAILABLE)
    assert play.state is ClassicGroupState.PREPARING


def test_an_assignment_stored_too_late_counts_for_nothing() -> None:
    play = Playbook().completing("a", "b")
    play.storing = False
    play >> sync("a", 2, assignments={"b": b"B"})
    play >> join("b2", "b", protocols=OTHER) << synced("a", E.REBALANCE_IN_PROGRESS)
    for error in (E.NONE, E.COORDINATOR_NOT_AVAILABLE):
        play >> Persisted(play.stored[-1], error)
        play.done()
    assert play.state is ClassicGroupState.PREPARING


def test_who_does_not_sync_in_time_is_out() -> None:
    """The pending-sync timer is as long as the slowest rebalance timeout."""
    play = Playbook().completing("a", "b", session_timeout_ms=REBALANCE_MS * 2)
    play >> sync("a", 2, assignments={"a": b"A"}) << synced("a")
    assert play.state is ClassicGroupState.STABLE
    play.after(REBALANCE_MS - 1)
    assert play.state is ClassicGroupState.STABLE
    play.after(1)
    assert play.state is ClassicGroupState.PREPARING
    play >> join("a1", "a") << joined("a1", generation=3)
    play >> beat("b", 2) << beaten("b", E.UNKNOWN_MEMBER_ID)


def test_a_leader_that_does_not_sync_in_time_is_replaced() -> None:
    play = Playbook().completing("a", "b", session_timeout_ms=REBALANCE_MS * 2)
    play >> sync("b", 2)
    play.after(REBALANCE_MS) << synced("b", E.REBALANCE_IN_PROGRESS)
    play >> join("b1", "b") << joined("b1", generation=3, leader="b")


def test_the_session_does_not_run_against_who_waits_for_the_leader() -> None:
    """The follower is silent because it waits for an answer; the silent leader is out."""
    play = Playbook().completing("a", "b")
    play >> sync("b", 2)
    play.after(SESSION_MS) << synced("b", E.REBALANCE_IN_PROGRESS)
    assert set(play.group.members) == {"b"}


def test_a_silent_member_is_out_after_its_session_and_the_last_one_leaves_an_empty_group() -> None:
    """From generation 1 to Empty with generation 2, as in the log of a real coordinator (S210)."""
    play = Playbook().stable("a")
    play.after(SESSION_MS)
    assert [m.reason for m in play.moves[-2:]] == ["session of a has ended", "nobody is left"]
    assert (play.state, play.group.generation) == (ClassicGroupState.EMPTY, 2)
    assert play.group.deadline_ms() is None


def test_a_tick_that_comes_too_early_does_nothing() -> None:
    play = Playbook().stable("a", "b")
    before = play.group.deadline_ms()
    play >> Tick()
    play.done()
    assert play.group.deadline_ms() == before


def test_a_rebalance_of_many_members_costs_a_fixed_amount_of_work_for_each() -> None:
    """Twice the members, twice the work: counted in calls, which do not depend on the machine."""

    def work(size: int) -> int:
        import sys

        names = [f"m{i}" for i in range(size)]
        play = Playbook().completing(names[0])
        calls = 0

        def count(frame: object, event: str, arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            for name in names[1:]:
                play >> join(name, member_id_required=False)
                play.take_all()
            play >> join("again", names[0])
            play.take_all()
            for name in names[1:]:
                play >> sync(name, 2)
            play >> sync(names[0], 2, assignments={})
        finally:
            sys.setprofile(None)
        play.take_all()
        assert play.state is ClassicGroupState.STABLE
        return calls

    assert work(400) <= 2.2 * work(200)


def test_transitions_are_told_with_their_reason() -> None:
    play = Playbook().stable("a")
    play >> join("b", member_id_required=False, reason="a partition was added")
    assert play.moves[-1] == Moved(
        ClassicGroupState.STABLE,
        ClassicGroupState.PREPARING,
        1,
        "member b joins: a partition was added",
    )
