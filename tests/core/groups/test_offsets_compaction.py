"""`__consumer_offsets` compacted: fewer records, and the same groups for whoever reads them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker.core.groups.shard import GroupShard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    commit_request,
    fetch_request,
    join_request,
    leave_request,
    sync_request,
)

OFFSETS = "__consumer_offsets"
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


def one_partition(**configs: str) -> GroupNode:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return GroupNode(configs={"offsets.topic.num.partitions": "1", **named})


def reloaded(node: GroupNode) -> GroupShard:
    """What another coordinator makes of the log."""
    old = node.shard()
    shard = GroupShard(old.coordinator, old.partition)
    shard.read_at_once()
    return shard


def picture(shard: GroupShard) -> object:
    """Everything that a coordinator knows from the log, comparable."""
    images = {name: group.image() for name, group in shard.classic.all().items()}
    return images, shard.offsets.committed


def keys(node: GroupNode) -> list[bytes | None]:
    return [record.key for record in node.log()]


def compact(node: GroupNode) -> None:
    before, live = picture(reloaded(node)), picture(node.shard())
    node.cluster.run_compaction(OFFSETS).run()
    assert picture(reloaded(node)) == before
    assert picture(node.shard()) == live


@pytest.mark.covers("S176")
def test_of_a_hundred_commits_the_newest_is_left():
    node = one_partition()
    for offset in range(100):
        node.ask(commit_request({("t", 0): offset}))
    assert len(keys(node)) == 100
    compact(node)
    (record,) = node.log()
    assert record.offset == 99
    committed = reloaded(node).offsets.get("g", "t", 0)
    assert committed is not None
    assert committed.offset == 99


@pytest.mark.covers("S176", "S177")
def test_expired_offsets_leave_tombstones_and_those_go_a_day_after_compaction():
    node = one_partition(offsets_retention_minutes="10")
    node.ask(commit_request({("t", 0): 1, ("t", 1): 1}))
    node.ask(commit_request({("t", 0): 5}, "other"))
    node.advance(9 * MINUTE_MS)
    node.ask(commit_request({("t", 0): 6}, "other"))
    node.advance(2 * MINUTE_MS)
    assert [record.value is None for record in node.log()][-3:] == [True] * 3
    compact(node)
    # Two partitions and the group are gone, the other group has its newest commit.
    assert [record.value is None for record in node.log()] == [False, True, True, True]
    node.advance(DAY_MS - 1)
    assert "other" not in node.shard().groups  # by now it expired as well
    compact(node)
    tombstones = len(keys(node))
    node.advance(1)
    compact(node)
    assert len(keys(node)) == tombstones - 3
    node.advance(DAY_MS)
    compact(node)
    assert keys(node) == []
    assert reloaded(node).groups == {}


def test_the_cleaner_compacts_it_by_itself_when_segments_close():
    node = one_partition()
    topic = node.cluster.topics[OFFSETS]
    node.cluster.replace_topic_configs(
        topic, {**topic.configs.overrides, "internal.segment.bytes": "1000"}
    )
    for offset in range(1000):
        node.ask(commit_request({("t", offset % 3): offset}))
    closed = [segment.base_offset for segment in node.shard().partition.log.segments][-1]
    assert closed > 900
    node.advance(15_000)
    assert len([record for record in node.log() if record.offset < closed]) == 3
    answer = node.ask(fetch_request({"t": [0, 1, 2]})).groups[0].topics[0]
    assert [p.committed_offset for p in answer.partitions] == [999, 997, 998]


def test_a_group_moves_to_a_coordinator_that_reads_a_compacted_log():
    node = one_partition()
    members = node.stable(count=2)
    generation = node.shard().groups["g"].generation
    for offset in range(50):
        node.ask(commit_request({("t", 0): offset}, "g", members[0], generation))
    compact(node)
    node.shard().unload()
    answer = node.ask(commit_request({("t", 0): 77}, "g", members[1], generation))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert node.ask(leave_request("g", *members)).error_code == ErrorCode.NONE
    assert node.shard().groups["g"].state.value == "Empty"


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_compaction_at_any_moment_of_any_history_changes_nothing(seed: int) -> None:
    """Random joins, leaves, commits, deletions, expiries and time, compacted now and then."""
    draw = Random(seed)
    node = one_partition(offsets_retention_minutes="2", group_initial_rebalance_delay_ms="0")
    for _ in range(60):
        group = draw.choice(["a", "b", "c"])
        present = node.shard().classic.get(group)
        members = list(present.members) if present else []
        match draw.randrange(9):
            case 0 | 1:
                node.member(group)
            case 2 if members:
                node.send(join_request(group, draw.choice(members)))
            case 3 if present and members:
                parts = {name: draw.randbytes(3) for name in members}
                leader = present.leader or ""
                node.send(sync_request(group, leader, present.generation, parts))
            case 4 | 5:
                name = draw.choice([*members, ""])
                generation = present.generation if present and name else -1
                offsets = {("t", draw.randrange(3)): draw.randrange(1000)}
                node.send(commit_request(offsets, group, name, generation))
            case 6 if members:
                node.send(leave_request(group, draw.choice(members)))
            case 7:
                node.advance(draw.choice([10, SESSION_MS, 5 * MINUTE_MS, DAY_MS]))
                if draw.random() < 0.3:
                    node.send(DeleteGroupsRequest(groups_names=[group]))
            case 8:
                compact(node)
    compact(node)
    held = keys(node)
    assert len(held) == len(set(held))
