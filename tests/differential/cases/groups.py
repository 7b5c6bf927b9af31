"""Classic groups: joining, syncing, heartbeats, leaving, and every state's refusals."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_subscription,
)
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.differential.dialogue import find_coordinator
from tests.differential.registry import case
from tests.differential.session import Session

SUBSCRIPTION = encode_subscription(ConsumerProtocolSubscription(topics=["some-topic"]), 1)
MEMBER_ID_REQUIRED = 79


def join(group: str, member_id: str = "", **options: Any) -> JoinGroupRequest:
    """A consumer's JoinGroup; `protocols` maps names to metadata."""
    protocols = options.pop("protocols", {"range": SUBSCRIPTION})
    defaults: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
    }
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in protocols.items()
        ],
        **{**defaults, **options},
    )


def sync(
    group: str,
    generation: int,
    member_id: str,
    assignments: dict[str, bytes] | None = None,
    **o: Any,
) -> SyncGroupRequest:
    defaults: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range"}
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=to, assignment=blob)
            for to, blob in (assignments or {}).items()
        ],
        **{**defaults, **o},
    )


def beat(
    group: str, generation: int, member_id: str, instance: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
    )


def leave(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group,
        members=[
            MemberIdentity(member_id=member_id, group_instance_id=instance)
            for member_id, instance in members
        ],
    )


def new_group(session: Session, suffix: str = "") -> str:
    group = f"{session.name}{suffix}"
    find_coordinator(session, group)
    return group


def member_of(session: Session, group: str, who: str = "main", **options: Any) -> str:
    """A member id of the broker's, by way of MEMBER_ID_REQUIRED."""
    return str(session.ask(join(group, **options), 5, who, label="first join").member_id)


def stable_group(
    session: Session, group: str, who: str = "main", **options: Any
) -> tuple[str, int]:
    """A group of one member, assigned; (member id, generation)."""
    member_id = member_of(session, group, who, **options)
    joined = session.ask(join(group, member_id, **options), 5, who)
    session.ask(sync(group, joined.generation_id, member_id, {member_id: b"mine"}), 3, who)
    return member_id, joined.generation_id


def describe(session: Session, *groups: str, version: int = 5) -> None:
    session.ask(DescribeGroupsRequest(groups=list(groups)), version, label="describe")


@case()
def join_every_version(session: Session) -> None:
    for version in range(10):
        group = new_group(session, f"-{version}")
        answer = session.ask(join(group), version, label="new")
        if answer.error_code == MEMBER_ID_REQUIRED:
            answer = session.ask(join(group, answer.member_id), version, label="with the id")
        session.ask(join(group, answer.member_id), version, label="again before sync")
        request = sync(group, answer.generation_id, answer.member_id, {answer.member_id: b"all"})
        for sync_version in range(6):
            session.ask(request, sync_version, label="sync")
        for beat_version in range(5):
            session.ask(beat(group, answer.generation_id, answer.member_id), beat_version)
        for describe_version in range(7):
            describe(session, group, version=describe_version)
        session.ask(join(group, answer.member_id), version, label="leader joins again")


@case()
def join_refusals(session: Session) -> None:
    group = new_group(session)
    for version in (0, 5, 7, 9):
        session.ask(join(""), version, label="no group id")
        session.ask(join(group, session_timeout_ms=999), version, label="short session")
        session.ask(join(group, session_timeout_ms=1_800_001), version, label="long session")
        session.ask(join(group, "unknown-member"), version, label="unknown member")
        session.ask(join(group, protocol_type=""), version, label="no protocol type")
        session.ask(join(group, protocols={}), version, label="no protocols")
    member_id, _ = stable_group(session, group)
    for version in (0, 5, 7, 9):
        session.ask(join(group, "unknown-member"), version, label="unknown member of a group")
        session.ask(join(group, protocol_type="connect"), version, label="other type")
        other = {"sticky": SUBSCRIPTION}
        session.ask(join(group, protocols=other), version, label="no common protocol")
        session.ask(
            join(group, member_id, protocols=other, protocol_type="x"),
            version,
            label="known, other",
        )
    describe(session, group)


@case()
def sync_heartbeat_refusals(session: Session) -> None:
    group = new_group(session)
    for version in (0, 3, 5):
        session.ask(sync("", 1, "m"), version, label="no group id")
        session.ask(sync(group, 1, "m"), version, label="unknown group")
    for version in (0, 3, 4):
        session.ask(beat("", 1, "m"), version, label="no group id")
        session.ask(beat(group, 1, "m"), version, label="unknown group")
    member_id = member_of(session, group)
    session.ask(beat(group, 0, member_id), 3, label="pending member")
    session.ask(sync(group, 0, member_id), 3, label="pending member")
    generation = session.ask(join(group, member_id), 5).generation_id
    session.ask(beat(group, generation, member_id), 3, label="completing")
    session.ask(beat(group, generation + 1, member_id), 3, label="completing, newer")
    session.ask(sync(group, generation + 1, member_id), 3, label="newer generation")
    session.ask(sync(group, generation, "other"), 3, label="unknown member")
    session.ask(sync(group, generation, member_id, protocol_type=None), 5, label="no type")
    session.ask(sync(group, generation, member_id, protocol_name=None), 5, label="no name")
    session.ask(sync(group, generation, member_id, protocol_type="connect"), 5, label="type")
    session.ask(sync(group, generation, member_id, protocol_name="sticky"), 5, label="protocol")
    session.ask(sync(group, generation, member_id, {member_id: b"a", "ghost": b"b"}), 3)
    for version in (0, 3, 4):
        session.ask(beat(group, generation, member_id), version, label="stable")
        session.ask(beat(group, generation - 1, member_id), version, label="old generation")
        session.ask(beat(group, generation, "other"), version, label="unknown member")
    session.ask(beat(group, generation, member_id, "nobody"), 3, label="unknown instance")
    session.ask(leave(group, (member_id, None)), 3)
    session.ask(beat(group, generation, member_id), 3, label="empty")
    session.ask(sync(group, generation, member_id), 3, label="empty")
    session.ask(join(group, member_id), 5, label="left member joins")
    describe(session, group)


@case()
def two_members_rebalance(session: Session) -> None:
    group = new_group(session)
    first, generation = stable_group(session, group)
    second = member_of(session, group, "second")
    joining = session.start(join(group, second), 5, "second")
    wait_for_rebalance(session, group, generation, first)
    session.ask(sync(group, generation, first), 3, label="sync while preparing")
    describe(session, group)
    rejoined = session.ask(join(group, first), 5, label="leader rejoins")
    joined = joining("follower")
    describe(session, group)
    waiting = session.start(sync(group, joined.generation_id, second), 3, "second")
    shares = {first: b"1", second: b"2"}
    session.ask(sync(group, rejoined.generation_id, first, shares), 3, label="leader")
    waiting("follower")
    describe(session, group)
    session.ask(join(group, second), 5, "second", label="follower joins unchanged")
    changed = {"range": SUBSCRIPTION + b"changed"}
    rejoining = session.start(join(group, second, protocols=changed), 5, "second")
    wait_for_rebalance(session, group, joined.generation_id, first)
    session.ask(leave(group, (first, None)), 3, label="leader leaves")
    rejoining("new leader")
    describe(session, group)


def wait_for_rebalance(session: Session, group: str, generation: int, member_id: str) -> None:
    """Beat until the broker tells this member that the group rebalances."""
    session.until(beat(group, generation, member_id), 3, lambda answer: answer.error_code == 27)


@case()
def protocol_voting(session: Session) -> None:
    group = new_group(session)
    blob = SUBSCRIPTION
    mine = {"a": blob, "b": blob, "c": blob}
    first = member_of(session, group, protocols=mine)
    session.ask(join(group, first, protocols=mine), 5)
    session.ask(sync(group, 1, first), 3)
    theirs = {"c": blob + b"2", "b": blob + b"2"}
    second = member_of(session, group, "second", protocols=theirs)
    joining = session.start(join(group, second, protocols=theirs), 5, "second")
    wait_for_rebalance(session, group, 1, first)
    rejoining = session.start(join(group, first, protocols={"c": blob, "b": blob}), 5, "main")
    joining("follower")
    rejoining("leader")
    describe(session, group)


@case()
def static_members(session: Session) -> None:
    group = new_group(session)
    static = {"group_instance_id": "one"}
    for_v9 = new_group(session, "-9")
    for version, name in ((5, group), (9, for_v9)):
        joined = session.ask(join(name, **static), version, label="static join")
        member_id, generation = joined.member_id, joined.generation_id
        request = sync(name, generation, member_id, {member_id: b"kept"}, **static)
        session.ask(request, 5)
        again = session.ask(join(name, **static), version, "second", label="restarted")
        session.ask(sync(name, generation, again.member_id, **static), 5, "second")
        session.ask(beat(name, generation, member_id, "one"), 4, label="the fenced one beats")
        session.ask(beat(name, generation, again.member_id, "one"), 4, "second", label="new one")
        session.ask(beat(name, generation, again.member_id, "two"), 4, label="wrong instance")
        session.ask(join(name, member_id, **static), version, label="the fenced one joins")
        session.ask(sync(name, generation, member_id, **static), 5, label="the fenced one syncs")
        session.ask(join(name, again.member_id, **static), version, "second", label="leader again")
        describe(session, name)
        session.ask(leave(name, ("", "nobody")), 4, label="unknown instance leaves")
        session.ask(leave(name, (member_id, "one")), 4, label="fenced id leaves")
        session.ask(leave(name, ("", "one")), 4, label="an admin removes it")
        describe(session, name)


@case()
def leave_refusals(session: Session) -> None:
    group = new_group(session)
    old = LeaveGroupRequest(group_id=group, member_id="nobody")
    for version in (0, 1, 2):
        session.ask(old, version, label="unknown group")
    for version in (3, 4, 5):
        session.ask(leave(group, ("nobody", None)), version, label="unknown group")
        session.ask(leave("", ("nobody", None)), version, label="no group id")
    member_id, _ = stable_group(session, group)
    pending = member_of(session, group, "second")
    session.ask(leave(group, ("nobody", None), (pending, None)), 5, label="a pending one leaves")
    session.ask(LeaveGroupRequest(group_id=group, member_id="nobody"), 2, label="unknown member")
    session.ask(LeaveGroupRequest(group_id=group, member_id=member_id), 2, label="leaves")
    session.ask(leave(group, (member_id, None)), 5, label="twice")
    describe(session, group)


@case()
def list_and_delete_groups(session: Session) -> None:
    group = new_group(session)
    busy = new_group(session, "-busy")
    member_id, _ = stable_group(session, group)
    session.ask(leave(group, (member_id, None)), 3)
    stable_group(session, busy)

    def mine(answer: Any) -> Any:
        answer.groups = sorted(
            (found for found in answer.groups if found.group_id.startswith(session.name)),
            key=lambda found: found.group_id,
        )
        return answer

    for version in range(6):
        session.ask(ListGroupsRequest(), version, edit=mine)
    for states in (["Stable"], ["empty"], ["Stable", "Empty"], ["Nonsense"]):
        session.ask(ListGroupsRequest(states_filter=states), 5, label=f"{states}", edit=mine)
    for types in (["classic"], ["Consumer"], ["nonsense"]):
        session.ask(ListGroupsRequest(types_filter=types), 5, label=f"{types}", edit=mine)
    for version in (0, 1, 2):
        request = DeleteGroupsRequest(groups_names=[busy, "no-such-group", ""])
        session.ask(request, version, label="refused")
    session.ask(DeleteGroupsRequest(groups_names=[group, group]), 2, label="deleted")
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="gone")
    for version in (4, 5, 6):
        describe(session, group, busy, "no-such-group", version=version)
