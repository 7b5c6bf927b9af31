"""A shard does what its groups want done: answers, records, timers."""

from __future__ import annotations

import pytest

from mockbroker.core.events import Event, GroupLoaded
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.groups.shard import GroupShard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from tests.support.shard_starts import check_start_in_turns

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def test_a_completed_round_is_one_record(node: GroupNode) -> None:
    """The first join writes the empty group, the leader's SyncGroup the members."""
    (member,) = node.stable()
    assert [r.key for r in node.log()] == [b"\0\2\0\1g"] * 2
    node.ask(join_request("g", member))
    assert len(node.log()) == 2
    node.ask(sync_request("g", member, 2, {member: b""}))
    assert len(node.log()) == 3


def test_batches_look_like_those_of_a_real_coordinator(node: GroupNode) -> None:
    """No producer id, yet a sequence of 0; neither compressed nor transactional."""
    node.stable()
    for stored in node.shard().partition.log.batches():
        header = BatchHeader(bytes(stored))
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
        assert header.attributes == 0


def test_records_carry_the_clusters_time(node: GroupNode) -> None:
    node.advance(5)
    node.stable()
    assert {record.timestamp for record in node.log()} == {node.now_ms}


def test_a_group_has_one_timer_however_many_members(node: GroupNode) -> None:
    timers = node.cluster.clock_domains.groups
    node.stable("other")
    before = sum(timer.callback is not None for _, _, timer in timers._heap)
    node.stable(count=5)
    assert sum(timer.callback is not None for _, _, timer in timers._heap) == before + 1


def test_the_timer_follows_the_earliest_deadline(node: GroupNode) -> None:
    node.stable()
    short = node.ask(join_request(session_timeout_ms=6_000)).member_id
    node.advance(6_000)
    assert short not in node.shard().groups["g"].pending_join_members
    node.advance(SESSION_MS - 6_000)
    assert node.shard().groups["g"].state.value == "Empty"


def test_timers_stop_when_nothing_is_left_to_wait_for(node: GroupNode) -> None:
    (member,) = node.stable()
    node.ask(leave_request("g", member))
    assert node.shard().groups["g"].deadline_ms() is None


def test_a_record_too_large_for_the_topic_is_not_written() -> None:
    """1 MiB by default. The client sees the server fail, as with Kafka."""
    node = GroupNode()
    node.shard().partition.topic.configs.replace({"max.message.bytes": "300"})
    given = node.ask(join_request()).member_id
    node.ask(join_request("g", given))
    answer = node.ask(sync_request("g", given, 1, {given: bytes(400)}))
    assert answer.error_code == E.UNKNOWN_SERVER_ERROR
    assert node.shard().groups["g"].state.value == "PreparingRebalance"
    commits = [("t", p, OffsetAndMetadata(1, metadata="x" * 100)) for p in range(3)]
    assert node.shard().commit("g", commits) is E.UNKNOWN_SERVER_ERROR
    assert node.shard().offsets.of_group("g") == {}


def test_a_group_that_cannot_be_written_does_not_come_into_being() -> None:
    node = GroupNode()
    node.shard().partition.topic.configs.replace({"max.message.bytes": "10"})
    answer = node.ask(join_request())
    assert (answer.error_code, answer.member_id) == (E.UNKNOWN_SERVER_ERROR, "")
    assert node.shard().groups == {}


def test_transactional_commits_ask_less_of_the_group(node: GroupNode) -> None:
    """No member, no generation: no check. A generation of nobody: ILLEGAL_GENERATION."""
    shard = node.shard()

    def check(member: str = "", generation: int = -1) -> ErrorCode:
        return shard.check_commit(
            "g", member, None, generation, unknown_group=E.ILLEGAL_GENERATION, transactional=True
        )

    assert check("m", 0) is E.ILLEGAL_GENERATION
    assert check() is E.NONE
    member = node.member()
    assert check() is E.NONE
    assert check(member, 1) is E.NONE  # CompletingRebalance: a plain commit would be refused
    assert check(member, 0) is E.ILLEGAL_GENERATION
    assert check("ghost", 1) is E.UNKNOWN_MEMBER_ID


def test_after_unloading_no_timer_and_no_group_is_left(node: GroupNode) -> None:
    (member,) = node.stable()
    shard = node.shard()
    shard.unload()
    shard.unload()
    assert shard.groups == {}
    node.advance(SESSION_MS * 2)
    assert node.shard() is not shard
    assert node.ask(heartbeat_request("g", member, 1)).error_code == E.NONE


def test_thousands_of_offsets_go_in_several_batches(node: GroupNode) -> None:
    """A group or a topic may have more offsets than one batch can hold tombstones for."""
    shard = node.shard()
    topic = "x" * 200
    for group in ("g", "h"):
        shard = node.shard(group)
        shard.classic.create_simple_group(group, node.now_ms)
        for start in range(0, 12_000, 1_000):
            commits = [(topic, p, OffsetAndMetadata(1)) for p in range(start, start + 1_000)]
            assert shard.commit(group, commits) is E.NONE
    assert node.shard("g").delete_group("g") is E.NONE
    node.shard("h").topics_deleted([topic])
    assert node.shard("g").offsets.of_group("g") == {}
    assert node.shard("h").offsets.of_group("h") == {}
    assert "h" in node.shard("h").groups


def batches(node: GroupNode) -> int:
    return len(list(node.shard().partition.log.batches()))


@pytest.mark.parametrize(("offsets", "expected"), [(1000, 1), (1001, 2)])
def test_a_batch_of_tombstones_is_of_a_thousand_offsets_at_most(
    node: GroupNode, offsets: int, expected: int
) -> None:
    shard = node.shard()
    shard.classic.create_simple_group("g", node.now_ms)
    commits = [("t", partition, OffsetAndMetadata(1)) for partition in range(offsets)]
    for delete in (lambda: shard.topics_deleted(["t"]), lambda: shard.delete_group("g")):
        assert shard.commit("g", commits) is E.NONE
        before = batches(node)
        delete()
        assert batches(node) == before + expected
        assert shard.offsets.of_group("g") == {}


@pytest.mark.parametrize("unloaded", [False, True])
def test_very_many_groups_are_started_in_turns(
    node: GroupNode, monkeypatch: pytest.MonkeyPatch, *, unloaded: bool
) -> None:
    """A load that is overtaken by an unload starts no more of them."""
    monkeypatch.setattr("mockbroker.core.groups.shard.GROUPS_PER_TURN", 2)
    index = node.cluster.find_coordinator_partition("g")
    partition = node.cluster.partition("__consumer_offsets", index)
    assert partition is not None
    shard = GroupShard(node.cluster.brokers[1].groups, partition)
    for name in ("a", "b", "c", "d", "e"):
        shard.classic.create_simple_group(name, node.now_ms)
    started: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, GroupLoaded):
            started.append(event.group)

    node.cluster.runtime.on_event.append(note)
    check_start_in_turns(shard, started, unloaded=unloaded)


def test_a_deleted_group_takes_its_timer_along(node: GroupNode) -> None:
    (member,) = node.stable()
    node.ask(leave_request("g", member))
    due_ms = node.cluster.clock_domains.groups.deadline_ms()
    assert due_ms == node.now_ms + SESSION_MS
    assert node.shard().delete_group("g") is ErrorCode.NONE
    assert node.shard().groups == {}
    assert node.cluster.clock_domains.groups.deadline_ms() != due_ms
