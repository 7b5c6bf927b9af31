"""A coordinator's state is what its log says: replaying it gives the same groups and offsets."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.events import GroupImage
from mockbroker.core.groups.group import CLASSIC, CONSUMER, SHARE, STREAMS
from mockbroker.core.groups.loader import GROUP_TYPES, OFFSET_COMMIT
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.groups.shard import GroupShard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.records import ControlType, Record, build_batch, build_marker
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    commit_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)


def fresh(node: GroupNode, group: str = "g") -> GroupShard:
    """A second shard, read from the same log."""
    old = node.shard(group)
    shard = GroupShard(old.coordinator, old.partition)
    shard.read_at_once()
    shard.loading = False
    return shard


def pictures(shard: GroupShard) -> object:
    """Everything that is to survive a move, comparable."""
    groups = {name: group.image() for name, group in shard.classic.all().items()}
    return groups, shard.offsets.committed


def timeless(group: ClassicGroup) -> GroupImage:
    """A Stable group is stored just before it becomes Stable, so its timestamp is older."""
    return msgspec.structs.replace(group.image(), state_timestamp_ms=0)


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(configs={"offsets.topic.num.partitions": "1"})


def test_an_empty_log_is_an_empty_shard(node: GroupNode) -> None:
    shard = fresh(node)
    assert (shard.groups, shard.offsets.committed) == ({}, {})


def test_groups_and_offsets_come_back(node: GroupNode) -> None:
    members = node.stable(count=2)
    node.ask(commit_request({("t", 0): 7, ("t", 1): 8}, "g", members[0], 2, metadata="m"))
    node.ask(commit_request({("t", 0): 1}, "simple"))
    node.stable("static", group_instance_id="i")
    node.stable("left")
    node.ask(leave_request("left", *node.shard().groups["left"].members))
    node.ask(join_request("young"))
    assert pictures(fresh(node)) == pictures(node.shard())


def test_the_round_under_way_is_forgotten(node: GroupNode) -> None:
    """Members, generation and assignments are those of the last completed round."""
    members = node.stable(count=2)
    before = pictures(node.shard())
    node.member()
    assert pictures(fresh(node)) == before
    assert [m in fresh(node).groups["g"].members for m in members] == [True, True]


def test_tombstones_remove_what_came_before(node: GroupNode) -> None:
    node.ask(commit_request({("t", 0): 7, ("t", 1): 8}))
    node.cluster.delete_topic("t")
    node.topic("t", 3)
    node.ask(commit_request({("t", 2): 9}))
    node.ask(commit_request({("t", 2): 9}, "gone"))
    node.ask(DeleteGroupsRequest(groups_names=["gone"]))
    shard = fresh(node)
    assert set(shard.groups) == {"g"}
    assert list(shard.offsets.of_group("g")["t"]) == [2]


def test_what_is_above_the_high_watermark_counts_as_well(node: GroupNode) -> None:
    """A new leader's watermark may be late: what was acknowledged before is in its log."""
    node.ask(commit_request({("t", 0): 7}))
    partition = node.shard().partition
    node.ask(commit_request({("t", 0): 8}))
    partition.high_watermark -= 1
    value = fresh(node).offsets.get("g", "t", 0)
    assert value is not None
    assert value.offset == 8


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_commits_in_a_transaction_wait_for_its_marker(node: GroupNode, kind: ControlType) -> None:
    node.ask(commit_request({("t", 0): 7}))
    partition = node.shard().partition
    key, value = group_records.offset_commit("g", "t", 0, OffsetAndMetadata(99))
    batch = build_batch(
        [Record(timestamp=node.now_ms, key=key, value=value)],
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    partition.append_records(batch, node.now_ms)
    pending = fresh(node)
    assert pending.offsets.has_pending("g", "t", 0)
    marker = build_marker(kind, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp=1)
    partition.append_records(marker, node.now_ms)
    settled = fresh(node)
    assert not settled.offsets.has_pending("g", "t", 0)
    found = settled.offsets.get("g", "t", 0)
    assert found is not None
    assert found.offset == (99 if kind is ControlType.COMMIT else 7)


def test_sessions_run_from_the_moment_of_loading(node: GroupNode) -> None:
    """Members have a whole session to find the new coordinator, no matter how late it is."""
    (member,) = node.stable()
    node.advance(SESSION_MS - 1)
    partition = node.shard().partition
    node.shard().unload()
    assert node.ask(heartbeat_request("g", member, 1)).error_code == ErrorCode.NONE
    node.shard().unload()
    assert node.shard().partition is partition
    node.advance(SESSION_MS - 1)
    assert set(node.shard().groups["g"].members) == {member}
    node.advance(1)
    assert not node.shard().groups["g"].members


def test_records_of_other_kinds_are_passed_over(node: GroupNode) -> None:
    """Of other groups, of the future, without a key, or mangled by an administrator."""
    keys = [b"\0\x09\0\1h", b"\0\x63", None, b"\0\1\0\1", b"\0", b"\0\2\0\1h"]
    batch = build_batch([Record(timestamp=1, key=key, value=b"\0\3\0") for key in keys])
    node.shard().partition.append_records(batch, 1)
    node.ask(commit_request({("t", 0): 7}))
    shard = fresh(node)
    assert set(shard.groups) == {"g"}
    assert shard.unreadable == 3


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_replaying_the_log_of_any_history_gives_the_same_state(seed: int) -> None:
    """Random joins, leaves, commits, deletions and time; the log is all that is needed."""
    draw = Random(seed)
    node = GroupNode(configs={"offsets.topic.num.partitions": "1"})
    groups = ["a", "b", "c"]
    for _ in range(40):
        group = draw.choice(groups)
        present = node.shard().classic.get(group)
        members = list(present.members) if present else []
        match draw.randrange(8):
            case 0 | 1:
                node.member(group)
            case 2 if members:
                node.send(join_request(group, draw.choice(members)))
            case 3 | 4 if present and members:
                parts = {name: draw.randbytes(3) for name in members}
                leader = present.leader or ""
                node.send(sync_request(group, leader, present.generation, parts))
            case 5:
                name = draw.choice([*members, ""])
                generation = present.generation if present and name else -1
                offsets = {("t", draw.randrange(3)): draw.randrange(1000)}
                node.send(commit_request(offsets, group, name, generation))
            case 6 if members:
                node.send(leave_request(group, draw.choice(members)))
            case 7:
                if draw.random() < 0.5:
                    node.advance(draw.randrange(SESSION_MS))
                else:
                    node.send(DeleteGroupsRequest(groups_names=[group]))
    again = fresh(node)
    now = node.shard()
    assert again.offsets.committed == now.offsets.committed
    assert set(again.groups) == set(now.groups)
    for name, group in now.groups.items():
        if group.state.value in {"Stable", "Empty"} and group.generation:
            assert timeless(again.groups[name]) == timeless(group), name


def test_each_record_type_belongs_to_the_type_of_group_that_it_is_named_after() -> None:
    """All declared types do, but not that of an offset."""
    prefixes = {"Group": CLASSIC, "Consumer": CONSUMER, "Streams": STREAMS, "Share": SHARE}
    named = {
        code: next(kind for prefix, kind in prefixes.items() if name.startswith(prefix))
        for code, name in CONSUMER_OFFSETS._names.items()
        if code != OFFSET_COMMIT
    }
    assert named == GROUP_TYPES
