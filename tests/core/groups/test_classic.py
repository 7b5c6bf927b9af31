"""What each state of a group says to a member that is known and up to date, and to others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mockbroker.core.groups.classic import ClassicGroup, ClassicGroupSettings
from mockbroker.core.groups.events import Delete, Leaver, Loaded, Unload
from mockbroker.core.groups.states import ANSWERS, ClassicGroupState, RequestAction, RequestKind
from mockbroker_protocol import ErrorCode
from tests.support.group_playbook import (
    SESSION_MS,
    START_MS,
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
LEADER, FOLLOWER = "a", "b"


def empty() -> Playbook:
    """A group that had members, and has lost them."""
    play = Playbook().stable(LEADER, FOLLOWER)
    play >> leave("x", LEADER, FOLLOWER)
    play.take_all()
    assert play.state is ClassicGroupState.EMPTY
    return play


def dead() -> Playbook:
    play = empty()
    play >> Delete()
    assert play.state is ClassicGroupState.DEAD
    return play


STATES: dict[ClassicGroupState, Callable[[], Playbook]] = {
    ClassicGroupState.EMPTY: empty,
    ClassicGroupState.PREPARING: lambda: Playbook().preparing(LEADER, "b", "c"),
    ClassicGroupState.COMPLETING: lambda: Playbook().completing(LEADER, FOLLOWER),
    ClassicGroupState.STABLE: lambda: Playbook().stable(LEADER, FOLLOWER),
    ClassicGroupState.DEAD: dead,
}

# State x request -> answer, as in the table of the protocol notes; "parked" is no answer yet.
CELLS: dict[RequestKind, dict[ClassicGroupState, ErrorCode | str]] = {
    RequestKind.JOIN: {
        ClassicGroupState.EMPTY: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.PREPARING: "parked",
        ClassicGroupState.COMPLETING: E.NONE,
        ClassicGroupState.STABLE: E.NONE,
        ClassicGroupState.DEAD: E.COORDINATOR_NOT_AVAILABLE,
    },
    RequestKind.SYNC: {
        ClassicGroupState.EMPTY: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.PREPARING: E.REBALANCE_IN_PROGRESS,
        ClassicGroupState.COMPLETING: "parked",
        ClassicGroupState.STABLE: E.NONE,
        ClassicGroupState.DEAD: E.COORDINATOR_NOT_AVAILABLE,
    },
    RequestKind.HEARTBEAT: {
        ClassicGroupState.EMPTY: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.PREPARING: E.REBALANCE_IN_PROGRESS,
        ClassicGroupState.COMPLETING: E.NONE,
        ClassicGroupState.STABLE: E.NONE,
        ClassicGroupState.DEAD: E.COORDINATOR_NOT_AVAILABLE,
    },
    RequestKind.COMMIT: {
        ClassicGroupState.EMPTY: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.PREPARING: E.NONE,
        ClassicGroupState.COMPLETING: E.REBALANCE_IN_PROGRESS,
        ClassicGroupState.STABLE: E.NONE,
        ClassicGroupState.DEAD: E.COORDINATOR_NOT_AVAILABLE,
    },
    RequestKind.PLAIN_COMMIT: {
        ClassicGroupState.EMPTY: E.NONE,
        ClassicGroupState.PREPARING: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.COMPLETING: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.STABLE: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.DEAD: E.COORDINATOR_NOT_AVAILABLE,
    },
    RequestKind.TXN_COMMIT: {
        ClassicGroupState.EMPTY: E.NONE,
        ClassicGroupState.PREPARING: E.NONE,
        ClassicGroupState.COMPLETING: E.NONE,
        ClassicGroupState.STABLE: E.NONE,
        ClassicGroupState.DEAD: E.COORDINATOR_NOT_AVAILABLE,
    },
    RequestKind.LEAVE: {
        ClassicGroupState.EMPTY: E.UNKNOWN_MEMBER_ID,
        ClassicGroupState.PREPARING: E.NONE,
        ClassicGroupState.COMPLETING: E.NONE,
        ClassicGroupState.STABLE: E.NONE,
        ClassicGroupState.DEAD: E.COORDINATOR_NOT_AVAILABLE,
    },
    RequestKind.DELETE_GROUP: {
        ClassicGroupState.EMPTY: E.NONE,
        ClassicGroupState.PREPARING: E.NON_EMPTY_GROUP,
        ClassicGroupState.COMPLETING: E.NON_EMPTY_GROUP,
        ClassicGroupState.STABLE: E.NON_EMPTY_GROUP,
        ClassicGroupState.DEAD: E.GROUP_ID_NOT_FOUND,
    },
    RequestKind.DELETE_OFFSETS: {
        ClassicGroupState.EMPTY: E.NONE,
        ClassicGroupState.PREPARING: "unsubscribed only",
        ClassicGroupState.COMPLETING: "unsubscribed only",
        ClassicGroupState.STABLE: "unsubscribed only",
        ClassicGroupState.DEAD: E.GROUP_ID_NOT_FOUND,
    },
}


def answer_of(play: Playbook, question: RequestKind) -> ErrorCode | str:
    """Put a question to a group, as a known member with the current generation where it has any."""
    group, member = play.group, FOLLOWER
    generation = group.generation
    if question is RequestKind.COMMIT:
        return group.check_commit(member, None, generation, play.now_ms)
    if question is RequestKind.PLAIN_COMMIT:
        return group.check_commit("", None, -1, play.now_ms)
    if question is RequestKind.TXN_COMMIT:
        return group.check_commit("", None, -1, play.now_ms, transactional=True)
    if question is RequestKind.DELETE_GROUP:
        return group.check_delete()
    if question is RequestKind.DELETE_OFFSETS:
        verdict = ANSWERS[group.state][question]
        return "unsubscribed only" if isinstance(verdict, RequestAction) else verdict
    events = {
        RequestKind.JOIN: join("asked", member),
        RequestKind.SYNC: sync("asked", generation, member_id=member),
        RequestKind.HEARTBEAT: beat("asked", generation, member_id=member),
        RequestKind.LEAVE: leave("asked", member),
    }
    play >> events[question]
    answers = [e.result for e in play.take_all() if getattr(e, "callback", None) == "asked"]
    if not answers:
        return "parked"
    (answer,) = answers
    members = getattr(answer, "members", ())
    if question is RequestKind.LEAVE and members:
        return members[0].error
    return answer.error


@pytest.mark.parametrize("state", ClassicGroupState)
@pytest.mark.parametrize("question", RequestKind)
def test_each_state_answers_each_request(question: RequestKind, state: ClassicGroupState) -> None:
    """Every cell of the table, driven through the machine."""
    assert answer_of(STATES[state](), question) == CELLS[question][state]


@pytest.mark.parametrize(
    "state", [ClassicGroupState.PREPARING, ClassicGroupState.COMPLETING, ClassicGroupState.STABLE]
)
def test_a_stale_generation_is_refused_before_the_state_is_looked_at(
    state: ClassicGroupState,
) -> None:
    play = STATES[state]()
    stale = play.group.generation - 1
    play >> beat("x", stale, member_id=FOLLOWER) << beaten("x", E.ILLEGAL_GENERATION)
    play >> sync("x", stale, member_id=FOLLOWER) << synced("x", E.ILLEGAL_GENERATION)
    for transactional in (False, True):
        error = play.group.check_commit(
            FOLLOWER, None, stale, play.now_ms, transactional=transactional
        )
        assert error is E.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    "state", [ClassicGroupState.PREPARING, ClassicGroupState.COMPLETING, ClassicGroupState.STABLE]
)
def test_an_unknown_member_is_refused_before_its_generation_is_looked_at(
    state: ClassicGroupState,
) -> None:
    play = STATES[state]()
    play >> beat("ghost", 99) << beaten("ghost", E.UNKNOWN_MEMBER_ID)
    play >> sync("ghost", 99) << synced("ghost", E.UNKNOWN_MEMBER_ID)
    play >> join("x", "ghost") << joined("x", E.UNKNOWN_MEMBER_ID, member_id="ghost")
    assert play.group.check_commit("ghost", None, 99, play.now_ms) is E.UNKNOWN_MEMBER_ID


def test_an_instance_id_must_be_known_and_must_belong_to_the_member() -> None:
    """25 for an instance nobody has, 82 for one that has another member id."""
    play = Playbook().completing("a", instance_id="one")
    play >> join("b", instance_id="two")
    play >> join("x", "a", instance_id="one") << joined("x", E.NONE, generation=2)
    play << joined("b", E.NONE, generation=2)
    for instance, error in (("three", E.UNKNOWN_MEMBER_ID), ("two", E.FENCED_INSTANCE_ID)):
        play >> beat("a", 2, instance_id=instance) << beaten("a", error)
        play >> sync("a", 2, instance_id=instance) << synced("a", error)
        play >> join("x", "a", instance_id=instance) << joined("x", error, member_id="a")
        assert play.group.check_commit("a", instance, 2, play.now_ms) is error
        play >> leave("x", Leaver("a", instance))
        play << left("x", members=(_left("a", instance, error),))
    play >> beat("a", 2, instance_id="one") << beaten("a")


def _left(member: str, instance: str | None, error: ErrorCode) -> object:
    from mockbroker.core.groups.events import LeftMember

    return LeftMember(member, instance, error)


def test_a_commit_with_a_member_id_but_no_generation_is_of_no_generation() -> None:
    play = Playbook().stable("a")
    assert play.group.check_commit("a", None, -1, play.now_ms) is E.ILLEGAL_GENERATION
    assert play.group.check_commit("", "i", -1, play.now_ms) is E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("state", [ClassicGroupState.PREPARING, ClassicGroupState.STABLE])
@pytest.mark.parametrize("renew", ["heartbeat", "commit"])
def test_heartbeats_and_commits_renew_the_session(state: ClassicGroupState, renew: str) -> None:
    play = Playbook().stable("a", "b")
    if state is ClassicGroupState.PREPARING:
        play >> join("b2", "b", protocols=(("range", b"other"),))
    for _ in range(3):
        play.after(SESSION_MS - 1)
        for member in ("a", "b"):
            if renew == "commit":
                assert play.group.check_commit(member, None, 2, play.now_ms) is E.NONE
            else:
                play.group.heartbeat(member, None, 2, play.now_ms)
    assert play.state is state


def test_a_transactional_commit_does_not_renew_the_session() -> None:
    play = Playbook().stable("a")
    play.after(SESSION_MS - 1)
    assert play.group.check_commit("a", None, 1, play.now_ms, transactional=True) is E.NONE
    play.after(1)
    assert play.state is ClassicGroupState.EMPTY


def test_what_is_stored_brings_back_the_same_group() -> None:
    """Members, assignments, leader, generation and protocol survive; waits and offers do not."""
    play = Playbook().stable("a", "b", protocols=(("range", b"r"), ("sticky", b"s")))
    image = play.group.image()
    again = ClassicGroup.restore("g", ClassicGroupSettings(), image, START_MS)
    assert again.image() == image
    assert again.state is ClassicGroupState.STABLE
    assert again.leader == "a"
    assert again.members["b"].protocols == (("range", b"r"),)
    assert again.subscriptions == (b"r", b"r")
    assert again.deadline_ms() is None  # sessions run once the whole log is read
    replay = Playbook(again)
    replay >> Loaded()
    replay >> sync("b", 2) << synced("b", assignment=b"b")
    replay.after(SESSION_MS)
    assert replay.state is ClassicGroupState.EMPTY


def test_an_empty_group_comes_back_empty_with_its_generation() -> None:
    play = empty()
    image = play.group.image()
    again = ClassicGroup.restore("g", ClassicGroupSettings(), image, START_MS)
    assert (again.state, again.generation) == (ClassicGroupState.EMPTY, 3)
    assert again.protocol_type == "consumer"
    assert again.image() == image


def test_a_loaded_group_above_the_limit_rebalances() -> None:
    """group.max.size was lowered: members get the chance to commit before some must go."""
    image = Playbook().stable("a", "b", "c").group.image()
    play = Playbook(ClassicGroup.restore("g", ClassicGroupSettings(size_max=2), image, START_MS))
    play >> Loaded()
    assert play.state is ClassicGroupState.PREPARING
    play >> join("a1", "a")
    play >> join("b1", "b")
    play >> join("c1", "c") << joined("c1", E.GROUP_MAX_SIZE_REACHED, member_id="")


def test_unloading_sends_whoever_waits_to_the_new_coordinator() -> None:
    play = Playbook().preparing("a", "b")
    play >> Unload() << joined("b-again", E.NOT_COORDINATOR, member_id="b")
    assert play.state is ClassicGroupState.DEAD
    play = Playbook().completing("a", "b")
    play >> sync("b", 2)
    play >> Unload() << synced("b", E.NOT_COORDINATOR)
    play = Playbook().stable("a")
    play >> Unload()
    assert play.group.deadline_ms() is None


def test_a_member_that_joins_again_has_the_timeouts_of_its_newest_request() -> None:
    play = Playbook().stable("a")
    play >> join("again", "a", rebalance_timeout_ms=77_000, session_timeout_ms=7_000)
    play.take_all()
    member = play.group.members["a"]
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (77_000, 7_000)
