"""Classic groups as the wire shows them: raw requests over sockets, time moved by the test."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import GroupMetadataKey, OffsetCommitKey
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.records import Record, read_records
from tests.support.group_node import (
    SESSION_MS,
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    subscription,
    sync_request,
)
from tests.support.group_wire import Link, Member, World, scenario

E = ErrorCode
MINUTE_MS = 60_000
OFFSETS = "__consumer_offsets"


async def group_log(world: World, group: str) -> list[Record]:
    """The records of a group's partition of `__consumer_offsets`, fetched like any others."""
    node = await world.coordinator(group)
    index = world.server.cluster.find_coordinator_partition(group)
    wanted = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
    link = await world.link(node)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(OFFSETS, partitions=[wanted])])
    (answer,) = (await link.send(request)).responses[0].partitions
    assert answer.error_code == 0
    return list(read_records(answer.records))


# ------------------------------------------------------------------------------------ coordinators


@pytest.mark.covers("S191", "S192", "S193")
@scenario(brokers=3)
async def test_a_group_is_found_on_the_leader_of_its_partition(world: World) -> None:
    """Java's hash, Kafka's abs, 50 partitions; extreme and negative hashes included."""
    seeds = {
        "group-24": 10,
        "group-101": 10,
        "group-36": 43,
        "group-81": 43,
        "cg1": 31,
        "test": 48,
        "my-group-id": 12,
        "consumer-tutorial-group": 37,
        "consumerGroup1": 6,
        "jinx_01": 5,
        "TEST-SZL": 4,
        "polygenelubricants": 0,
    }
    found = {group: await world.coordinator(group) for group in seeds}
    response = await world.control.send(
        MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS)])
    )
    (topic,) = response.topics
    assert len(topic.partitions) == 50
    leaders = {p.partition_index: p.leader_id for p in topic.partitions}
    assert found == {group: leaders[partition] for group, partition in seeds.items()}
    assert len(set(found.values())) == 3


@pytest.mark.covers("S193")
@scenario(brokers=3, configs={"offsets.topic.num.partitions": 1})
async def test_with_one_partition_every_group_is_found_on_one_broker(world: World) -> None:
    assert len({await world.coordinator(f"group-{i}") for i in range(20)}) == 1


@pytest.mark.covers("S233")
@scenario(brokers=3)
async def test_each_kind_of_coordinator_has_a_topic_of_its_own(world: World) -> None:
    async def topics() -> set[str]:
        response = await world.control.send(MetadataRequest(topics=None))
        return {topic.name for topic in response.topics if topic.is_internal}

    assert await topics() == set()
    await world.coordinator("g", 0)
    assert await topics() == {OFFSETS}
    await world.coordinator("tx", 1)
    assert await topics() == {OFFSETS, "__transaction_state"}
    await world.coordinator("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 2)
    assert await topics() == {OFFSETS, "__transaction_state", "__share_group_state"}
    request = FindCoordinatorRequest(key_type=3, coordinator_keys=["g"])
    (refused,) = (await world.control.send(request)).coordinators
    assert refused.error_code == E.INVALID_REQUEST


@pytest.mark.covers("S184")
@scenario(brokers=3)
async def test_only_the_coordinator_takes_commits(world: World) -> None:
    """Whoever asks elsewhere is told so, and finds the right broker by asking again."""
    coordinator = await world.coordinator("g")
    other = 1 + coordinator % 3
    request = commit_request({("t", 0): 5})
    answers = {}
    for node in (other, coordinator):
        response = await (await world.link(node)).send(request)
        answers[node] = response.topics[0].partitions[0].error_code
    assert answers == {other: E.NOT_COORDINATOR, coordinator: E.NONE}


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
    member = group.roster.members[refused.member_id]
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


# ------------------------------------------------------------------------------------------ offsets


@pytest.mark.covers("S174", "S175")
@scenario(topics={"foo": 2, "bar": 2})
async def test_commits_can_be_consumed_from_the_internal_topic(world: World) -> None:
    """Three partitions, three records; decoded they say what was committed, and by which group."""
    (member,) = await world.stable("test")
    before = len(await group_log(world, "test"))
    assert await member.commit({("foo", 0): 7, ("foo", 1): 8, ("bar", 1): 9}) == [E.NONE] * 3
    records = await group_log(world, "test")
    assert len(records) == before + 3
    committed = {}
    for record in records[before:]:
        assert record.key is not None
        key = CONSUMER_OFFSETS.decode_key(record.key)
        assert (type(key), record.key[:2]) == (OffsetCommitKey, b"\0\1")
        value = CONSUMER_OFFSETS.decode_value(key, record.value)
        committed[key.group, key.topic, key.partition] = (value.offset, value.commit_timestamp)
    now = world.now_ms
    assert committed == {
        ("test", "foo", 0): (7, now),
        ("test", "foo", 1): (8, now),
        ("test", "bar", 1): (9, now),
    }
    last_group_record = records[before - 1]
    assert last_group_record.key == b"\0\2\0\4test"
    assert last_group_record.value is not None
    value = CONSUMER_OFFSETS.decode_value(GroupMetadataKey("test"), last_group_record.value)
    assert (value.generation, value.protocol, value.leader) == (1, "range", member.member_id)
    assert [m.assignment for m in value.members] == [member.assignment]


@pytest.mark.covers("S178")
@scenario()
async def test_a_new_group_has_no_offsets(world: World) -> None:
    link = await world.link(await world.coordinator("new"))
    (group,) = (await link.send(fetch_request({"t": [0, 1, 2]}, "new"))).groups
    assert group.error_code == E.NONE
    (topic,) = group.topics
    assert [(p.committed_offset, p.error_code) for p in topic.partitions] == [(-1, E.NONE)] * 3


@pytest.mark.covers("S177")
@scenario()
async def test_committed_offsets_outlive_the_group_by_a_week(world: World) -> None:
    """10 080 minutes from when it became Empty; a group that lives never loses any."""
    lives = await world.client("lives", session_timeout_ms=1_800_000)
    await world.round([lives])
    (dies,) = await world.stable("dies")
    for member in (lives, dies):
        assert await member.commit({("t", 0): 5}) == [E.NONE]
    await dies.leave()
    for _ in range(7 * 48):
        await world.advance(30 * MINUTE_MS - 1)
        assert await lives.heartbeat() == E.NONE
    assert await dies.committed() == {("t", 0): 5}
    await world.advance(20 * MINUTE_MS)
    assert await dies.committed() == {}
    assert await lives.committed() == {("t", 0): 5}
    tombstones = [r.key[:2] for r in await group_log(world, "dies") if r.value is None and r.key]
    assert tombstones == [b"\0\1", b"\0\2"]


@pytest.mark.covers("S182")
@scenario()
async def test_offsets_can_be_set_by_hand_only_while_nobody_uses_the_group(world: World) -> None:
    """What an administrator's tool sends: a commit without member and generation."""
    (member,) = await world.stable("g")
    admin = await world.link(await world.coordinator("g"))

    async def reset(offset: int) -> int:
        response = await admin.send(commit_request({("t", 0): offset}))
        code: int = response.topics[0].partitions[0].error_code
        return code

    assert await member.commit({("t", 0): 50}) == [E.NONE]
    assert await reset(0) == E.UNKNOWN_MEMBER_ID
    await member.leave()
    assert await reset(7) == E.NONE
    assert await member.committed() == {("t", 0): 7}


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
