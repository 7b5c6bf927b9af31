"""Joining classic groups, as the wire shows it: raw requests over sockets."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from tests.support.group_node import (
    commit_request,
    heartbeat_request,
    join_request,
    leave_request,
    subscription,
    sync_request,
)
from tests.support.group_wire import Link, Member, World, scenario

E = ErrorCode
MINUTE_MS = 60_000


# ------------------------------------------------------------------------------------------ states


@pytest.mark.covers("S196")
@scenario()
async def test_the_states_by_name_at_each_point_of_a_round(world: World) -> None:
    """DescribeGroups and the filter of ListGroups agree on each of them."""
    seen = []

    async def look() -> None:
        state = await world.state("g")
        assert await world.listed("g", state) == (state != "Dead")
        assert not await world.listed("g", "Empty" if state != "Empty" else "Stable")
        seen.append(state)

    await look()
    first = await world.client("g")
    first.member_id = (await first.link.send(join_request("g"))).member_id
    await look()
    await first.join()
    await look()
    await first.start_sync()
    await first.end_sync()
    await look()
    second = await world.client("g")
    await second.start_join()
    await world.settle()
    await look()
    await world.round([first, second], started=[second])
    await look()
    for member in (first, second):
        await member.leave()
    await look()
    link = await world.link(await world.coordinator("g"))
    response = await link.send(DeleteGroupsRequest(groups_names=["g"]))
    assert response.results[0].error_code == E.NONE
    await look()
    assert seen == [
        "Dead",
        "Empty",
        "CompletingRebalance",
        "Stable",
        "PreparingRebalance",
        "Stable",
        "Empty",
        "Dead",
    ]


@pytest.mark.covers("S197")
@scenario()
async def test_which_requests_each_state_answers_how(world: World) -> None:
    """Each cell that a client can reach: request by request, in four states."""
    link = await world.link(await world.coordinator("g"))

    async def answers(member: Member) -> dict[str, int | str]:
        names = (member.group, member.member_id, member.generation)
        commit = commit_request({("t", 0): 1}, *names)
        plain = commit_request({("t", 0): 1}, "g")
        committed = (await link.send(commit)).topics[0].partitions[0].error_code
        uncommitted = (await link.send(plain)).topics[0].partitions[0].error_code
        deletion = DeleteGroupsRequest(groups_names=["g"])
        return {
            "Heartbeat": (await link.send(heartbeat_request(*names))).error_code,
            "OffsetCommit": committed,
            "OffsetCommit of nobody": uncommitted,
            "DeleteGroups": (await link.send(deletion)).results[0].error_code
            if await world.state("g") != "Empty"
            else E.NONE,
        }

    first = await world.client("g")
    await first.join()
    assert await answers(first) == {
        "Heartbeat": E.NONE,
        "OffsetCommit": E.REBALANCE_IN_PROGRESS,
        "OffsetCommit of nobody": E.UNKNOWN_MEMBER_ID,
        "DeleteGroups": E.NON_EMPTY_GROUP,
    }
    again = await link.send(join_request("g", first.member_id))
    assert (again.error_code, again.generation_id) == (E.NONE, 1)  # CompletingRebalance
    await first.start_sync()
    await first.end_sync()
    assert await answers(first) == {
        "Heartbeat": E.NONE,
        "OffsetCommit": E.NONE,
        "OffsetCommit of nobody": E.UNKNOWN_MEMBER_ID,
        "DeleteGroups": E.NON_EMPTY_GROUP,
    }
    assert (await link.send(first.sync_request())).assignment == first.assignment  # Stable
    second = await world.client("g")
    await second.start_join()
    await world.settle()
    assert await answers(first) == {
        "Heartbeat": E.REBALANCE_IN_PROGRESS,
        "OffsetCommit": E.NONE,
        "OffsetCommit of nobody": E.UNKNOWN_MEMBER_ID,
        "DeleteGroups": E.NON_EMPTY_GROUP,
    }
    refused = await link.send(first.sync_request())
    assert refused.error_code == E.REBALANCE_IN_PROGRESS
    await world.round([first, second], started=[second])
    for member in (first, second):
        assert (await member.leave()).members[0].error_code == E.NONE
    assert await answers(first) == {
        "Heartbeat": E.UNKNOWN_MEMBER_ID,
        "OffsetCommit": E.UNKNOWN_MEMBER_ID,
        "OffsetCommit of nobody": E.NONE,
        "DeleteGroups": E.NONE,
    }
    assert (await link.send(first.sync_request())).error_code == E.UNKNOWN_MEMBER_ID
    gone = await link.send(join_request("g", first.member_id))
    assert gone.error_code == E.UNKNOWN_MEMBER_ID
    assert (await first.leave()).members[0].error_code == E.UNKNOWN_MEMBER_ID


@pytest.mark.covers("S198")
@scenario()
async def test_the_end_of_a_group(world: World) -> None:
    """With offsets it stays Empty; without any it is gone at the next check, 10 minutes at most."""
    for group in ("kept", "bare"):
        (member,) = await world.stable(group)
        if group == "kept":
            assert await member.commit({("t", 0): 5}) == [E.NONE]
        await member.leave()
        assert await world.state(group) == "Empty"
    await world.advance(10 * MINUTE_MS)
    assert (await world.state("bare"), await world.listed("bare")) == ("Dead", False)
    assert (await world.state("kept"), await world.listed("kept", "Empty")) == ("Empty", True)


# ----------------------------------------------------------------------------------------- joining


@pytest.mark.covers("S199")
@scenario()
async def test_a_consumer_joins_with_the_id_it_is_given(world: World) -> None:
    """Session 10 s, rebalance timeout 300 s, no id: 79 and clientId-uuid."""
    link = await world.link(client_id="consumer-1")
    await world.coordinator("g")
    request = join_request("g", session_timeout_ms=10_000, rebalance_timeout_ms=300_000)
    refused = await link.send(request)
    assert refused.error_code == E.MEMBER_ID_REQUIRED
    assert re.fullmatch(r"consumer-1-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", refused.member_id)
    request.member_id = refused.member_id
    accepted = await link.send(request)
    assert (accepted.error_code, accepted.generation_id) == (E.NONE, 1)
    group = world.server.cluster.brokers[1].groups.shard_of("g").groups["g"]
    member = group.members[refused.member_id]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 300_000)


@pytest.mark.covers("S200")
@scenario()
async def test_the_first_member_leads_and_alone_sees_the_others(world: World) -> None:
    members = await world.stable("g", 3)
    first = members[0]
    assert [member.leads for member in members] == [True, False, False]
    assert first.listing == [member.member_id for member in members]
    assert [member.listing for member in members[1:]] == [[], []]
    await first.leave()
    await world.round(members[1:])
    assert [member.leads for member in members[1:]] == [True, False]
    assert len(members[1].listing) == 2


@pytest.mark.covers("S201", "S223")
@scenario()
async def test_generations_grow_by_one_and_a_join_takes_no_time(world: World) -> None:
    """Twelve generations, then the thirteenth, without a millisecond of the cluster's time."""
    started_ms = world.now_ms
    member = await world.client("g")
    for generation in range(1, 14):
        await world.round([member])
        assert member.generation == generation
    assert world.now_ms == started_ms
    await member.leave()
    await world.round([newcomer := await world.client("g")])
    assert newcomer.generation == 15  # the Empty group was a generation as well


@pytest.mark.covers("S201")
@scenario(configs={"group.initial.rebalance.delay.ms": 3000})
async def test_the_initial_delay_holds_the_first_join_back(world: World) -> None:
    members = [await world.client("g") for _ in range(3)]
    await members[0].start_join()
    await world.advance(1_000)
    for member in members[1:]:
        await member.start_join()
    await world.advance(1_999)
    assert all([await member.link.silent() for member in members])
    await world.advance(3_001)
    assert [(await member.end_join()).generation_id for member in members] == [1, 1, 1]


@pytest.mark.covers("S202")
@scenario()
async def test_followers_wait_for_the_assignment_of_the_leader(world: World) -> None:
    """n parts go in with the leader's SyncGroup, one comes out with each answer."""
    members = await world.stable("g", 3)
    leader, *followers = members
    for member in members:
        await member.start_join()
    for member in members:
        await member.end_join()
    for member in followers:
        await member.start_sync({})
    assert all([await member.link.silent() for member in followers])
    parts = {member.member_id: bytes([i]) for i, member in enumerate(members)}
    await leader.start_sync(parts)
    assert [(await member.end_sync()).assignment for member in members] == list(parts.values())


@pytest.mark.covers("S206", "S232")
@scenario()
async def test_what_members_agree_on_is_none_of_the_brokers_business(world: World) -> None:
    """Unknown names and metadata pass through; who shares nothing with the others is refused."""
    offers: list[dict[str, Any]] = [
        {"protocols": {"mine": b"\x00\xff", "sessioned": b"A"}, "protocol_type": "connect"},
        {"protocols": {"sessioned": b"B", "mine": b"\x01"}, "protocol_type": "connect"},
        {"protocols": {"sessioned": b"C"}, "protocol_type": "connect"},
    ]
    members = []
    for offer in offers:
        members.append(await world.client("g", **offer))
        await members[-1].start_join()
        for member in members[:-1]:
            await member.start_join()
        responses = [await member.end_join() for member in members]
        names = {response.protocol_name for response in responses}
        assert names == {"mine" if len(members) == 1 else responses[0].protocol_name}
    assert names == {"sessioned"}
    assert [line.metadata for line in responses[0].members] == [b"A", b"B", b"C"]
    link = await world.link()
    for wrong in (
        {"protocols": {"mine": b""}, "protocol_type": "connect"},
        {"protocols": {"sessioned": b""}, "protocol_type": "consumer"},
    ):
        refused = await link.send(join_request("g", **wrong))
        assert refused.error_code == E.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.covers("S226", "S218")
@scenario()
async def test_new_metadata_of_a_follower_reaches_the_leader(world: World) -> None:
    """A subscription to another topic is a JoinGroup with other metadata, and a rebalance."""
    leader, follower = await world.stable("g", 2)
    follower.fields["protocols"] = {"range": subscription("t", "u")}
    await follower.start_join()
    await world.settle()
    assert await leader.heartbeat() == E.REBALANCE_IN_PROGRESS
    await leader.start_join()
    response = await leader.end_join()
    metadata = {line.member_id: line.metadata for line in response.members}
    assert metadata[follower.member_id] == subscription("t", "u")


# ----------------------------------------------------------------------------------- all versions


@pytest.mark.covers("S224")
@pytest.mark.parametrize("version", range(10))
def test_the_five_requests_in_all_their_versions(version: int) -> None:
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups; the last ones where they end."""

    @scenario()
    async def play(world: World) -> None:
        from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
        from mockbroker_protocol.messages.leave_group import LeaveGroupRequest

        await world.coordinator("g")
        link: Link = await world.link()
        request = join_request("g")
        joined = await link.send(request, version)
        if version >= 4:
            assert joined.error_code == E.MEMBER_ID_REQUIRED
            request.member_id = joined.member_id
            joined = await link.send(request, version)
        member = joined.member_id
        assert (joined.error_code, joined.generation_id, joined.leader) == (E.NONE, 1, member)
        synced = await link.send(sync_request("g", member, 1, {member: b"x"}), min(version, 5))
        assert (synced.error_code, synced.assignment) == (E.NONE, b"x")
        beat = await link.send(heartbeat_request("g", member, 1), min(version, 4))
        assert beat.error_code == E.NONE
        describe = DescribeGroupsRequest(groups=["g"])
        (group,) = (await link.send(describe, min(version, 6))).groups
        assert (group.group_state, group.protocol_data) == ("Stable", "range")
        assert [m.member_assignment for m in group.members] == [b"x"]
        if version < 3:
            leave: Any = LeaveGroupRequest(group_id="g", member_id=member)
        else:
            leave = leave_request("g", member)
        left = await link.send(leave, min(version, 5))
        assert left.error_code == E.NONE
        assert [m.error_code for m in left.members] == ([E.NONE] if version >= 3 else [])

    play()
