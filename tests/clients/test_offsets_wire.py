"""Coordinators and committed offsets, as the wire shows them."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import GroupMetadataKey, OffsetCommitKey
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.group_node import (
    commit_request,
    fetch_request,
)
from tests.support.group_wire import OFFSETS, World, group_log, scenario

E = ErrorCode
MINUTE_MS = 60_000


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
    assert len(set(found.values())) > 1


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
        await world.advance(30 * MINUTE_MS - 1_000)
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
