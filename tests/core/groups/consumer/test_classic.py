"""Classic members in a consumer group: joined at once, told to join again when there is cause."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.groups.consumer.group import ConsumerSettings
from mockbroker.core.groups.consumer.states import (
    MIGRATION_POLICIES,
    ConsumerGroupState,
    MemberState,
)
from mockbroker.core.groups.events import (
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    Leaver,
    Sync,
    SyncResult,
)
from mockbroker.core.groups.modern.events import CurrentAssignment, CurrentAssignmentChange
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from tests.support.consumer_playbook import (
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    Told,
    Topics,
    beat,
    join,
    leave,
    told,
    topic_id,
)

NONE = ErrorCode.NONE
REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS


def subscription(*topics: str, owned: list[int] | None = None, rack_id: str | None = None) -> bytes:
    parts = [TopicPartition("t", owned)] if owned else []
    return encode_subscription(
        ConsumerProtocolSubscription(topics=list(topics), owned_partitions=parts, rack_id=rack_id)
    )


def classic_join(callback: str, owned: list[int] | None = None, **fields: Any) -> Join:
    values: dict[str, Any] = {
        "member_id": callback,
        "new_member_id": callback,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": (("range", subscription("t", owned=owned)),),
    }
    return Join(callback=callback, **(values | fields))


def classic_sync(callback: str, epoch: int, **fields: Any) -> Sync:
    return Sync(**({"callback": callback, "member_id": callback, "generation": epoch} | fields))


def classic_beat(callback: str, epoch: int, **fields: Any) -> Heartbeat:
    return Heartbeat(
        **({"callback": callback, "member_id": callback, "generation": epoch} | fields)
    )


def joined(callback: str, epoch: int = -1, error: ErrorCode = NONE, **fields: Any) -> Told:
    return Told(callback, JoinResult, {"error": error, "generation": epoch, **fields})


def beaten(callback: str, error: ErrorCode = NONE) -> Told:
    return Told(callback, HeartbeatResult, {"error": error})


def synced(play: Playbook, callback: str, epoch: int) -> list[int]:
    """What SyncGroup tells a member to read."""
    play >> classic_sync(callback, epoch)
    result = play.take()
    assert (type(result), result.error) == (SyncResult, NONE)
    parts = decode_assignment(result.assignment).assigned_partitions
    return [p for part in parts for p in part.partitions]


@pytest.fixture
def play() -> Playbook:
    """A group with a member of the new protocol that owns everything."""
    return Playbook(session_timeout_ms=10**9).stable("new")


def test_a_classic_member_joins_as_a_follower(play: Playbook) -> None:
    play >> classic_join("old")
    play << joined("old", 3, leader="", members=(), protocol_name="range", member_id="old")
    assert synced(play, "old", 3) == []
    play >> classic_beat("old", 3) << beaten("old")
    assert play.state is ConsumerGroupState.RECONCILING


def test_it_is_told_to_join_again_once_something_is_free(play: Playbook) -> None:
    play >> classic_join("old") << joined("old", 3)
    play >> beat("new", 2) << told("new", 2, {"t": [0, 1]})
    play >> classic_beat("old", 3) << beaten("old")
    play >> beat("new", 2, {"t": [0, 1]}) << told("new", 3)
    play >> classic_beat("old", 3) << beaten("old", REBALANCING)
    play >> classic_join("old") << joined("old", 3)
    assert synced(play, "old", 3) == [2, 3]
    assert play.state is ConsumerGroupState.STABLE


def test_it_is_told_to_join_again_when_there_is_something_to_give_up(play: Playbook) -> None:
    play >> leave("new") << told("new", -1)
    assert play.downgrades == []
    play.stable("other") >> classic_join("old")
    play.take()
    epoch = play.group.epoch
    play >> beat("other", play.epoch("other"), {"t": [0, 1]})
    play.take()
    play >> classic_join("old") << joined("old", epoch)
    assert synced(play, "old", epoch) == [2, 3]
    play >> beat("third", 0, {}, rebalance_timeout_ms=1, topic_names=frozenset({"t"}))
    play.take()
    play >> classic_beat("old", epoch) << beaten("old", REBALANCING)
    play >> classic_sync("old", epoch) << Told("old", SyncResult, {"error": REBALANCING})
    # It says that it still owns both: it may keep one, and is to come back without the other.
    play >> classic_join("old", owned=[2, 3]) << joined("old", epoch)
    assert len(synced(play, "old", epoch)) == 1
    play >> classic_beat("old", epoch) << beaten("old", REBALANCING)
    kept = play.owned("old")["t"]
    play >> classic_join("old", owned=kept) << joined("old", epoch + 1)


def test_a_new_member_is_given_its_id_first(play: Playbook) -> None:
    play >> classic_join("old", member_id="")
    play << joined("old", error=ErrorCode.MEMBER_ID_REQUIRED, member_id="old")
    assert list(play.group.members) == ["new"]
    play >> classic_join("old", member_id="", member_id_required=False) << joined("old", 3)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("range", b"\0"),)}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_does_not_fit_in_is_refused(
    play: Playbook, fields: dict[str, Any], error: ErrorCode
) -> None:
    play >> classic_join("old", **fields) << joined("old", error=error, member_id="")
    assert list(play.group.members) == ["new"]


def test_classic_members_have_a_protocol_in_common(play: Playbook) -> None:
    both = (("range", subscription("t")), ("sticky", subscription("t")))
    play >> classic_join("a", protocols=both) << joined("a", 3)
    play >> classic_join("b", protocols=both[1:]) << joined("b", 4)
    play >> classic_join("c", protocols=both[:1])
    play << joined("c", error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    other = (("other", subscription("t")),)
    play >> classic_join("c", protocols=other)
    play << joined("c", error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def test_a_full_group_takes_nobody_in() -> None:
    play = Playbook(size_max=1).stable("new")
    play >> classic_join("old") << joined("old", error=ErrorCode.GROUP_MAX_SIZE_REACHED)


def test_without_migration_classic_members_may_not_join() -> None:
    play = Playbook(migration=MIGRATION_POLICIES["disabled"]).stable("new")
    play >> classic_join("old") << joined("old", error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "new"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_sync_and_heartbeat_are_of_classic_members_of_this_epoch(
    play: Playbook, fields: dict[str, Any], error: ErrorCode
) -> None:
    play >> classic_join("old") << joined("old", 3)
    play >> classic_beat("old", 3, **fields) << beaten("old", error)
    play >> classic_sync("old", 3, **fields) << Told("old", SyncResult, {"error": error})


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_sync_names_the_protocol_of_the_join(play: Playbook, fields: dict[str, str]) -> None:
    play >> classic_join("old") << joined("old", 3)
    play >> classic_sync("old", 3, **fields)
    play << Told("old", SyncResult, {"error": ErrorCode.INCONSISTENT_GROUP_PROTOCOL})


# --------------------------------------------------------------------------------------- timers


def test_its_session_is_its_own(play: Playbook) -> None:
    play >> classic_join("old") << joined("old", 3)
    assert synced(play, "old", 3) == []
    play.after(SESSION_MS - 1) >> classic_beat("old", 3) << beaten("old")
    play.after(SESSION_MS - 1)
    assert "old" in play.group.members
    play.after(1)
    assert "old" not in play.group.members


def test_its_session_is_renewed_when_it_fetches_its_assignment(play: Playbook) -> None:
    play >> classic_join("old") << joined("old", 3)
    play.after(SESSION_MS - 1)
    assert synced(play, "old", 3) == []
    play.after(SESSION_MS - 1)
    assert "old" in play.group.members
    play.after(1)
    assert "old" not in play.group.members


def test_it_has_to_fetch_its_assignment_in_time(play: Playbook) -> None:
    long: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    play >> classic_join("old", **long) << joined("old", 3)
    play.after(REBALANCE_MS)
    assert "old" not in play.group.members


def test_it_fetches_its_assignment_once(play: Playbook) -> None:
    long: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    play >> classic_join("old", **long) << joined("old", 3)
    assert synced(play, "old", 3) == []
    play.after(REBALANCE_MS)
    assert "old" in play.group.members


def test_it_joins_again_once(play: Playbook) -> None:
    long: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    play >> classic_join("old", **long) << joined("old", 3)
    play >> beat("new", 2) << told("new", 2, {"t": [0, 1]})
    play >> beat("new", 2, {"t": [0, 1]}) << told("new", 3)
    play >> classic_beat("old", 3) << beaten("old", REBALANCING)
    play >> classic_join("old", **long) << joined("old", 3)
    assert synced(play, "old", 3) == [2, 3]
    play.after(REBALANCE_MS)
    assert "old" in play.group.members


def test_it_has_to_join_again_in_time(play: Playbook) -> None:
    long: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    play >> classic_join("old", **long) << joined("old", 3)
    assert synced(play, "old", 3) == []
    play >> beat("new", 2) << told("new", 2, {"t": [0, 1]})
    play >> beat("new", 2, {"t": [0, 1]}) << told("new", 3)
    play >> classic_beat("old", 3) << beaten("old", REBALANCING)
    play.after(REBALANCE_MS - 1) >> classic_beat("old", 3) << beaten("old", REBALANCING)
    play.after(1)
    assert "old" not in play.group.members


def test_it_has_to_join_again_in_time_after_a_sync_that_says_so(play: Playbook) -> None:
    long: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    play >> classic_join("old", **long) << joined("old", 3)
    assert synced(play, "old", 3) == []
    play >> join("third", "t")
    play.take()
    play >> classic_sync("old", 3) << Told("old", SyncResult, {"error": REBALANCING})
    play.after(REBALANCE_MS - 1)
    assert "old" in play.group.members
    play.after(1)
    assert "old" not in play.group.members


# ----------------------------------------------------------------------------- static, changing


def test_a_static_member_replaces_its_former_self_whatever_it_speaks(play: Playbook) -> None:
    one = {"instance_id": "one"}
    play >> classic_join("old", member_id="", **one) << joined("old", 3)
    play >> classic_join("again", member_id="", **one) << joined("again", 3)
    assert set(play.group.members) == {"new", "again"}
    play >> classic_beat("old", 3, **one) << beaten("old", ErrorCode.FENCED_INSTANCE_ID)
    play >> beat("modern", 0, {}, rebalance_timeout_ms=1, topic_names=frozenset({"t"}), **one)
    assert play.take().error is NONE
    assert set(play.group.members) == {"new", "modern"}
    assert play.group.classic_count == 0


def test_a_member_that_changes_its_protocol_keeps_its_place(play: Playbook) -> None:
    """By its id: a client that was upgraded in place."""
    play >> classic_join("old") << joined("old", 3)
    play >> beat("old", 3) << told("old", 3)
    assert play.group.members["old"].classic is None
    assert play.group.classic_count == 0


def test_a_member_that_becomes_a_classic_one_gives_up_its_regex() -> None:
    play = Playbook(Topics(t=1, u1=1)).stable("new")
    play >> beat("both", 0, {}, rebalance_timeout_ms=1, regex="u.*")
    play.take()
    assert play.group.subscribed_names() == {"t", "u1"}
    play >> classic_join("both")
    assert play.take().error is NONE
    assert play.group.subscribed_names() == {"t"}


def test_a_member_subscribes_to_the_topics_of_its_first_protocol() -> None:
    play = Playbook(Topics(t=1, u=1, v=1)).stable("new")
    protocols = (("range", subscription("u")), ("sticky", subscription("v")))
    play >> classic_join("old", protocols=protocols)
    assert play.take().error is NONE
    assert play.group.subscribed_names() == {"t", "u"}


def test_a_change_of_a_topic_is_not_lost_with_a_join_that_is_refused(play: Playbook) -> None:
    play >> classic_join("old") << joined("old", 3)
    strange = CurrentAssignment(3, 2, MemberState.UNKNOWN, {topic_id("t"): {0: 3}}, {})
    play.group.apply([CurrentAssignmentChange("old", strange)])
    play.topics.put("t", 5)
    play >> classic_join("old", owned=[0])
    play << joined("old", error=ErrorCode.FENCED_MEMBER_EPOCH)
    assert play.group.epoch == 3
    play >> beat("new", play.epoch("new"))
    play.take()
    assert play.group.epoch == 4


def test_the_group_is_to_be_downgraded_when_the_last_of_the_new_protocol_goes(
    play: Playbook,
) -> None:
    play >> classic_join("old") << joined("old", 3)
    play >> Leave("admin", (Leaver("new"),))
    (downgrade,) = play.downgrades
    assert downgrade.leaving == {"new"}
    assert downgrade.rebalance
    play.done()


def test_it_is_so_too_when_its_session_ends() -> None:
    play = Playbook(session_timeout_ms=SESSION_MS).stable("new")
    long = {"session_timeout_ms": 10 * SESSION_MS}
    play >> classic_join("old", **long) << joined("old", 3)
    play.after(SESSION_MS)
    (downgrade,) = play.downgrades
    assert (downgrade.leaving, downgrade.answer) == ({"new"}, None)


def test_or_comes_back_as_a_classic_member() -> None:
    play = Playbook()
    one = {"instance_id": "one"}
    play >> beat("new", 0, {}, rebalance_timeout_ms=1, topic_names=frozenset({"t"}), **one)
    play.take()
    play >> classic_join("old", member_id="", owned=[0, 1, 2, 3], **one)
    (downgrade,) = play.downgrades
    assert downgrade.joining is not None
    assert (downgrade.joining.member_id, downgrade.rebalance) == ("old", None)
    assert downgrade.joining.assigned == play.group.members["new"].assigned


@pytest.mark.parametrize(("size_max", "fits"), [(1, False), (2, True)])
def test_a_group_that_is_too_large_stays_what_it_is(size_max: int, *, fits: bool) -> None:
    play = Playbook(classic_size_max=size_max, session_timeout_ms=10**9).stable("new")
    for member in ("a", "b"):
        play >> classic_join(member)
        play.take()
    play >> leave("new")
    if not fits:
        play << told("new", -1)
    assert len(play.downgrades) == fits


@pytest.mark.parametrize(("size_max", "fits"), [(1, False), (2, True)])
def test_a_member_that_comes_back_as_a_classic_one_counts_for_the_size(
    size_max: int, *, fits: bool
) -> None:
    play = Playbook(classic_size_max=size_max, session_timeout_ms=10**9)
    play >> join("new", "t", instance_id="one")
    play.take()
    play >> classic_join("other")
    play.take()
    play >> classic_join("old", member_id="", instance_id="one")
    assert (len(play.downgrades), len(play.answers)) == ((1, 0) if fits else (0, 1))


def test_a_classic_member_that_comes_back_as_one_changes_nothing_about_the_group() -> None:
    """Although it could have been downgraded, had the policy been another one before."""
    play = Playbook(migration=MIGRATION_POLICIES["upgrade"], session_timeout_ms=10**9)
    play.stable("new")
    play >> classic_join("old", member_id="", instance_id="one")
    play.take()
    play >> leave("new")
    play.take()
    play.group.settings = ConsumerSettings(assignment_interval_ms=0)
    play >> classic_join("again", member_id="", instance_id="one")
    assert play.take().error is NONE
    assert play.downgrades == []


def test_sync_names_the_first_protocol_of_a_join_with_several(play: Playbook) -> None:
    both = (("range", subscription("t")), ("sticky", subscription("t")))
    play >> classic_join("old", protocols=both) << joined("old", 3)
    play >> classic_sync("old", 3, protocol_name="sticky")
    play << Told("old", SyncResult, {"error": ErrorCode.INCONSISTENT_GROUP_PROTOCOL})
    play >> classic_sync("old", 3, protocol_name="range")
    play << Told("old", SyncResult, {"error": ErrorCode.NONE})


@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1)])
def test_an_assignment_has_the_version_of_the_first_subscription(
    play: Playbook, first: int, second: int
) -> None:
    wanted = ConsumerProtocolSubscription(topics=["t"])
    protocols = (
        ("range", encode_subscription(wanted, first)),
        ("sticky", encode_subscription(wanted, second)),
    )
    play >> classic_join("old", protocols=protocols) << joined("old", 3)
    play >> classic_sync("old", 3)
    assert play.take().assignment[:2] == bytes([0, first])


def test_a_member_stays_in_its_rack_until_it_names_another(play: Playbook) -> None:
    racks = []
    for rack_id in ("r1", None, "r2"):
        play >> classic_join("old", protocols=(("range", subscription("t", rack_id=rack_id)),))
        play << joined("old", 3)
        racks.append(play.group.members["old"].rack_id)
    assert racks == ["r1", "r1", "r2"]
