"""Staying in a classic group and losing it: raw requests, time moved by the test."""

from __future__ import annotations

from random import Random

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import GroupMetadataKey
from tests.support.group_node import (
    SESSION_MS,
    commit_request,
    join_request,
)
from tests.support.group_wire import Member, World, group_log, scenario

E = ErrorCode


# ------------------------------------------------------------------------------------- being alive


@pytest.mark.covers("S207", "S210")
@scenario()
async def test_heartbeats_keep_a_member_and_silence_loses_it(world: World) -> None:
    """Three session timeouts of heartbeats and nothing else; one without, and it is gone."""
    (member,) = await world.stable("g")
    for _ in range(30):
        await world.advance(SESSION_MS // 10)
        assert await member.heartbeat() == E.NONE
    await world.advance(SESSION_MS - 1)
    assert await world.state("g") == "Stable"
    await world.advance(1)
    assert await world.state("g") == "Empty"
    assert await member.heartbeat() == E.UNKNOWN_MEMBER_ID
    (last, *_) = [r for r in reversed(await group_log(world, "g")) if r.value]
    assert last.value is not None
    assert CONSUMER_OFFSETS.decode_value(GroupMetadataKey("g"), last.value).generation == 2


@pytest.mark.covers("S208")
@scenario()
async def test_the_next_heartbeat_tells_of_a_rebalance(world: World) -> None:
    members = await world.stable("g", 2)
    newcomer = await world.client("g")
    await newcomer.start_join()
    await world.settle()
    assert [await member.heartbeat() for member in members] == [E.REBALANCE_IN_PROGRESS] * 2
    await world.round([*members, newcomer], started=[newcomer])
    assert [await m.heartbeat() for m in (*members, newcomer)] == [E.NONE] * 3


@pytest.mark.covers("S211")
@pytest.mark.parametrize("minimum", [6000, 100])
def test_the_session_timeout_has_bounds(minimum: int) -> None:
    """6 s and 30 min by default; the lower one can be lowered."""

    @scenario(configs={"group.min.session.timeout.ms": minimum})
    async def play(world: World) -> None:
        await world.coordinator("g")
        link = await world.link()
        for timeout_ms, allowed in (
            (minimum - 1, False),
            (minimum, True),
            (5_000, minimum <= 5_000),
            (1_800_000, True),
            (1_800_001, False),
        ):
            response = await link.send(join_request("g", session_timeout_ms=timeout_ms))
            error = E.MEMBER_ID_REQUIRED if allowed else E.INVALID_SESSION_TIMEOUT
            assert response.error_code == error

    play()


@pytest.mark.covers("S214")
@scenario()
async def test_a_round_waits_for_the_slowest_member_and_goes_on_without_it(world: World) -> None:
    """JoinGroup is answered after the rebalance timeout, long after any request timeout."""
    timeouts = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 240_000}
    here, late = await world.stable("g", 2, **timeouts)
    newcomer = await world.client("g", **timeouts)
    await newcomer.start_join()
    await here.start_join()
    for _ in range(4):
        await world.advance(59_000)
        assert await late.heartbeat() == E.REBALANCE_IN_PROGRESS
        assert await here.link.silent()
    await world.advance(5_000)
    assert [(await m.end_join()).generation_id for m in (here, newcomer)] == [3, 3]
    assert await late.heartbeat() == E.UNKNOWN_MEMBER_ID


@pytest.mark.covers("S217")
@scenario()
async def test_a_member_that_leaves_is_gone_at_once(world: World) -> None:
    stays, leaves = await world.stable("g", 2)
    started_ms = world.now_ms
    await leaves.leave()
    assert await stays.heartbeat() == E.REBALANCE_IN_PROGRESS
    await world.round([stays])
    assert (stays.listing, world.now_ms) == ([stays.member_id], started_ms)


@pytest.mark.covers("S221", "S180")
@scenario()
async def test_a_member_cut_off_learns_late_that_it_lost_everything(world: World) -> None:
    """The others have its partitions at session expiry; two minutes later its own commit fails."""
    cut_off, other = await world.stable("g", 2)
    assert await cut_off.commit({("t", 0): 10}) == [E.NONE]
    await world.advance(SESSION_MS - 1)
    assert await other.heartbeat() == E.NONE
    await world.advance(1)
    assert await other.heartbeat() == E.REBALANCE_IN_PROGRESS
    await world.round([other])
    assert await other.commit({("t", 0): 20}) == [E.NONE]
    for _ in range(24):
        await world.advance(5_000)
        assert await other.heartbeat() == E.NONE
    assert await cut_off.commit({("t", 0): 11}) == [E.UNKNOWN_MEMBER_ID]
    assert await cut_off.heartbeat() == E.UNKNOWN_MEMBER_ID
    stale = commit_request({("t", 0): 12}, "g", other.member_id, other.generation - 1)
    response = await other.link.send(stale)
    assert response.topics[0].partitions[0].error_code == E.ILLEGAL_GENERATION
    assert await other.committed() == {("t", 0): 20}


@pytest.mark.covers("S180")
@scenario()
async def test_commits_of_the_old_generation_count_until_the_new_one_begins(world: World) -> None:
    """0 while members gather, 27 until the assignment is known, 22 for the old generation."""
    first, second = await world.stable("g", 2)
    await second.start_join()
    assert await second.link.silent() is False  # a follower with nothing new is answered at once
    await second.end_join()
    await first.start_join()
    await world.settle()
    assert await second.commit({("t", 0): 1}) == [E.NONE]
    await second.start_join()
    for member in (first, second):
        await member.end_join()
    assert await second.commit({("t", 0): 2}) == [E.REBALANCE_IN_PROGRESS]
    old = commit_request({("t", 0): 3}, "g", second.member_id, second.generation - 1)
    response = await second.link.send(old)
    assert response.topics[0].partitions[0].error_code == E.ILLEGAL_GENERATION
    assert await second.committed() == {("t", 0): 1}


@pytest.mark.covers("S234")
@scenario()
async def test_a_restarted_client_waits_for_its_former_self(world: World) -> None:
    """Without LeaveGroup the old member holds the round up until its session ends."""
    (old,) = await world.stable("g")
    await world.advance(6_000)
    new = await world.client("g")
    await new.start_join()
    await world.advance(SESSION_MS - 6_000 - 1)
    assert await new.link.silent()
    assert await world.state("g") == "PreparingRebalance"
    await world.advance(1)
    response = await new.end_join()
    assert [line.member_id for line in response.members] == [new.member_id]
    assert old.member_id != new.member_id


# ---------------------------------------------------------------------------------- static members


@pytest.mark.covers("S216")
@scenario()
async def test_a_static_member_restarts_without_a_rebalance(world: World) -> None:
    """Same assignment, same generation; nobody else notices; the former self is fenced."""
    one = (await world.stable("g", group_instance_id="one"))[0]
    two = await world.client("g", group_instance_id="two")
    await two.start_join()
    await world.round([one, two], started=[two])
    generation = one.generation
    again = await world.client("g", group_instance_id="two")
    response = await again.join()
    assert (response.generation_id, response.error_code) == (generation, E.NONE)
    await again.start_sync({})
    assert (await again.end_sync()).assignment == two.assignment
    assert await one.heartbeat() == E.NONE
    assert await two.heartbeat() == E.FENCED_INSTANCE_ID
    assert await two.commit({("t", 0): 1}) == [E.FENCED_INSTANCE_ID]
    await world.advance(SESSION_MS - 1)
    assert await one.heartbeat() == E.NONE
    await world.advance(1)
    assert await one.heartbeat() == E.REBALANCE_IN_PROGRESS  # only now the partitions move


@pytest.mark.covers("S230")
@scenario()
async def test_a_static_leader_restarts_and_need_not_assign(world: World) -> None:
    (leader,) = await world.stable("g", group_instance_id="one")
    again = await world.client("g", group_instance_id="one")
    response = await again.join()
    assert (response.skip_assignment, response.leader) == (True, response.member_id)
    assert [line.group_instance_id for line in response.members] == ["one"]
    await again.start_sync({})
    assert (await again.end_sync()).assignment == leader.assignment


# ---------------------------------------------------------------------------------------- ownership


@pytest.mark.covers("S189", "S223")
@pytest.mark.parametrize("seed", range(6))
def test_a_partition_belongs_to_one_member_at_a_time(seed: int) -> None:
    """Random members join, leave and die; whoever leads shares the partitions out."""
    partitions = range(12)

    @scenario()
    async def play(world: World) -> None:
        draw = Random(seed)
        members: list[Member] = []
        generation = 0
        for _ in range(12):
            event = draw.choice(["join", "join", "leave", "die"])
            started = []
            if event == "join" or not members:
                started.append(await world.client("g"))
                await started[0].start_join()
            elif event == "leave":
                await members.pop(draw.randrange(len(members))).leave()
            else:
                members.pop(draw.randrange(len(members)))
                for _ in range(4):
                    await world.advance(SESSION_MS // 4)
                    for member in members:
                        await member.heartbeat()
            for member in members:
                await member.start_join()
            members += started
            for member in members:
                response = await member.end_join()
                assert response.error_code == E.NONE
            if not members:
                continue
            (leader,) = [member for member in members if member.leads]
            assert {member.generation for member in members} == {leader.generation}
            assert leader.generation > generation
            generation = leader.generation
            parts = {
                name: bytes(partitions[i :: len(leader.listing)])
                for i, name in enumerate(leader.listing)
            }
            for member in members:
                await member.start_sync(parts if member is leader else {})
            owned: list[int] = []
            for member in members:
                owned += (await member.end_sync()).assignment
            assert sorted(owned) == list(partitions)

    play()


@pytest.mark.covers("S220")
@scenario()
async def test_a_cooperative_handover_is_two_generations(world: World) -> None:
    """First the third member gets nothing, then what the others have given up."""
    offer = {"protocols": {"cooperative-sticky": b"owned"}}
    members = await world.stable("g", 2, **offer)
    for member in members:
        member.assignment = bytes(range(3)) if member.leads else bytes(range(3, 6))
    before = members[0].generation
    third = await world.client("g", **offer)
    await third.start_join()
    for member in members:
        member.fields["protocols"] = {"cooperative-sticky": b"gives one up"}
        await member.start_join()
    for member in (*members, third):
        await member.end_join()
    kept = {members[0].member_id: bytes([0, 1]), members[1].member_id: bytes([3, 4])}
    for member in (*members, third):
        await member.start_sync(kept | {third.member_id: b""} if member.leads else {})
    parts = [(await member.end_sync()).assignment for member in (*members, third)]
    assert parts == [bytes([0, 1]), bytes([3, 4]), b""]
    for member in (*members, third):
        await member.start_join()
    for member in (*members, third):
        await member.end_join()
    for member in (*members, third):
        await member.start_sync(kept | {third.member_id: bytes([2, 5])} if member.leads else {})
    parts = [(await member.end_sync()).assignment for member in (*members, third)]
    assert parts == [bytes([0, 1]), bytes([3, 4]), bytes([2, 5])]
    assert third.generation == before + 2
