"""OffsetCommit: refusals in their order, and stored offsets."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
)
from tests.support.streams_node import StreamsNode

E = ErrorCode
VERSIONS = range(2, 11)
T0 = ("t", 0)


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def in_version(node: GroupNode, request: OffsetCommitRequest, version: int) -> OffsetCommitRequest:
    """The request as a client of that version writes it: topics by id since v10."""
    if version >= 10:
        for topic in request.topics:
            known = node.cluster.topics.get(topic.name)
            topic.topic_id = known.topic_id if known else b"\x07" * 16
    return request


def commit(node: GroupNode, request: OffsetCommitRequest, version: int = 9) -> list[int]:
    """The error of each partition in the answer, in the answer's order."""
    response = node.ask(in_version(node, request, version), version)
    return [p.error_code for topic in response.topics for p in topic.partitions]


def committed(node: GroupNode, group: str = "g", topic: str = "t", partition: int = 0) -> int:
    response = node.ask(fetch_request({topic: [partition]}, group))
    offset: int = response.groups[0].topics[0].partitions[0].committed_offset
    return offset


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_and_partitions_that_do_not_exist_are_refused_alone(
    node: GroupNode, version: int
) -> None:
    """3 for each, or 100 for a topic id that nobody has; the others go through."""
    offsets = {("nope", 0): 1, ("t", 0): 2, ("t", 9): 3, ("t", -1): 4}
    request = in_version(node, commit_request(offsets), version)
    response = node.ask(request, version)
    found = {
        (t.name, t.topic_id, p.partition_index): p.error_code
        for t in response.topics
        for p in t.partitions
    }
    id_ = node.cluster.topics["t"].topic_id
    if version >= 10:
        expected = {
            ("", b"\x07" * 16, 0): E.UNKNOWN_TOPIC_ID,
            ("", id_, 0): E.NONE,
            ("", id_, 9): E.UNKNOWN_TOPIC_OR_PARTITION,
            ("", id_, -1): E.UNKNOWN_TOPIC_OR_PARTITION,
        }
    else:
        zero = bytes(16)
        expected = {
            ("nope", zero, 0): E.UNKNOWN_TOPIC_OR_PARTITION,
            ("t", zero, 0): E.NONE,
            ("t", zero, 9): E.UNKNOWN_TOPIC_OR_PARTITION,
            ("t", zero, -1): E.UNKNOWN_TOPIC_OR_PARTITION,
        }
    assert found == expected
    assert len(response.topics) == 2
    assert committed(node) == 2


def test_if_nothing_exists_the_group_is_not_asked(node: GroupNode) -> None:
    """Not even whether this is its coordinator."""
    node.shard().loading = True
    assert commit(node, commit_request({("nope", 0): 1})) == [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert commit(node, commit_request({("nope", 0): 1, T0: 1})) == [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.COORDINATOR_LOAD_IN_PROGRESS,
    ]


def test_another_broker_is_not_the_coordinator() -> None:
    node = GroupNode(racks=(None, None))
    request = commit_request({T0: 1})
    answers = [node.ask(request, broker=b).topics[0].partitions[0].error_code for b in (1, 2)]
    assert set(answers) == {E.NOT_COORDINATOR, E.NONE}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_generation_of_a_group_that_is_not_there(node: GroupNode, version: int) -> None:
    error = E.GROUP_ID_NOT_FOUND if version >= 9 else E.ILLEGAL_GENERATION
    assert commit(node, commit_request({T0: 1}, member="m", generation=0), version) == [error]
    assert "g" not in node.shard().groups


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_in_particular_may_commit_for_a_group_without_members(
    node: GroupNode, version: int
) -> None:
    """A simple group comes into being: consumers that assign themselves, administrators."""
    assert commit(node, commit_request({T0: 7}), version) == [E.NONE]
    group = node.shard().groups["g"]
    assert (group.state.value, group.protocol_type) == ("Empty", None)
    assert committed(node) == 7


def test_an_empty_group_id_is_allowed(node: GroupNode) -> None:
    assert commit(node, commit_request({T0: 3}, "")) == [E.NONE]
    assert committed(node, "") == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_errors_of_the_group_stand_at_each_partition(node: GroupNode, version: int) -> None:
    (member,) = node.stable()
    offsets = {("t", 0): 5, ("t", 1): 5}
    cases = {
        (member, 1): E.NONE,
        (member, 0): E.ILLEGAL_GENERATION,
        (member, 2): E.ILLEGAL_GENERATION,
        (member, -1): E.ILLEGAL_GENERATION,
        ("ghost", 1): E.UNKNOWN_MEMBER_ID,
        ("", -1): E.UNKNOWN_MEMBER_ID,
        ("", 1): E.UNKNOWN_MEMBER_ID,
    }
    for (name, generation), error in cases.items():
        request = commit_request(offsets, member=name, generation=generation)
        assert commit(node, request, version) == [error, error]


def test_a_late_commit_changes_nothing(node: GroupNode) -> None:
    """Stale generation, unknown member, and a generation whose assignment is not known yet."""
    (member,) = node.stable()
    assert commit(node, commit_request({T0: 10}, "g", member, 1)) == [E.NONE]
    other = node.member()
    # The old generation may commit while a rebalance gathers its members.
    assert commit(node, commit_request({T0: 11}, "g", member, 1)) == [E.NONE]
    node.ask(join_request("g", member))
    assert commit(node, commit_request({T0: 98}, "g", member, 1)) == [E.ILLEGAL_GENERATION]
    assert commit(node, commit_request({T0: 99}, "g", member, 2)) == [E.REBALANCE_IN_PROGRESS]
    assert commit(node, commit_request({T0: 97}, "g", "ghost", 2)) == [E.UNKNOWN_MEMBER_ID]
    assert other
    assert committed(node) == 11


def test_a_fenced_instance_does_not_commit(node: GroupNode) -> None:
    (member,) = node.stable(group_instance_id="i")
    node.ask(join_request(group_instance_id="i"))
    request = commit_request({T0: 1}, "g", member, 1, group_instance_id="i")
    assert commit(node, request, 7) == [E.FENCED_INSTANCE_ID]


def test_metadata_may_be_4096_characters_long(node: GroupNode) -> None:
    request = commit_request({("t", 0): 1}, metadata="x" * 4096)
    assert commit(node, request) == [E.NONE]
    request = commit_request({("t", 0): 2, ("t", 1): 2}, metadata="x" * 4097)
    request.topics[0].partitions[1].committed_metadata = None
    assert commit(node, request) == [E.OFFSET_METADATA_TOO_LARGE, E.NONE]
    assert (committed(node), committed(node, partition=1)) == (1, 2)


def test_the_limit_on_metadata_is_configurable() -> None:
    node = GroupNode(configs={"offset.metadata.max.bytes": "2"})
    assert commit(node, commit_request({T0: 1}, metadata="xxx")) == [E.OFFSET_METADATA_TOO_LARGE]


def test_without_enough_replicas_no_partition_is_said_to_be_committed() -> None:
    """Not even those get another answer that were refused for themselves; what could be counts."""
    node = GroupNode(racks=(None, None))
    request = commit_request({T0: 1}, metadata="x" * 4097)
    request.topics[0].partitions.append(OffsetCommitRequestPartition(1, 5))
    index = node.cluster.find_coordinator_partition("g")
    partition = node.cluster.partition("__consumer_offsets", index)
    assert partition is not None
    leader = partition.leader_id
    partition.topic.configs.replace({"min.insync.replicas": "2"})
    partition.set_isr([leader])
    pending = node.send(request, broker=leader)
    node.advance(5000)
    errors = [p.error_code for p in pending.response.topics[0].partitions]
    assert errors == [E.COORDINATOR_NOT_AVAILABLE] * 2
    partition.set_isr([1, 2])
    answer = node.ask(fetch_request({"t": [0, 1]}), broker=leader)
    offsets = [p.committed_offset for p in answer.groups[0].topics[0].partitions]
    assert offsets == [-1, 5]


# ----------------------------------------------------------------------------------- what is kept


@pytest.mark.parametrize("version", range(6, 11))
def test_each_partition_is_one_record_in_the_log(node: GroupNode, version: int) -> None:
    """Key v1; value v4 with the topic's id, which old clients do not even know."""
    request = commit_request({("t", 0): 42, ("t", 2): 7}, metadata="m", leader_epoch=3)
    commit(node, request, version)
    first, second = node.log()
    assert [r.offset for r in (first, second)] == [0, 1]
    assert first.key is not None
    assert first.key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"
    assert first.value is not None
    assert first.value[:2] == b"\x00\x04"
    key = CONSUMER_OFFSETS.decode_key(first.key)
    assert key == OffsetCommitKey("g", "t", 0)
    assert CONSUMER_OFFSETS.decode_value(key, first.value) == OffsetCommitValue(
        offset=42,
        leader_epoch=3,
        metadata="m",
        commit_timestamp=node.now_ms,
        topic_id=node.cluster.topics["t"].topic_id,
    )


@pytest.mark.parametrize("version", [2, 3, 4])
def test_old_clients_may_ask_for_a_retention_of_their_own(node: GroupNode, version: int) -> None:
    """Which takes a record of value v1; with -1 the broker's retention holds."""
    commit(node, commit_request({T0: 1}, retention_time_ms=5_000), version)
    commit(node, commit_request({T0: 1}, retention_time_ms=-1), version)
    values = [r.value for r in node.log()]
    assert [v[:2] for v in values if v is not None] == [b"\x00\x01", b"\x00\x04"]
    assert values[0] is not None
    assert values[0].endswith((node.now_ms + 5_000).to_bytes(8, "big"))


def test_a_retention_beyond_all_time_wraps_as_in_java(node: GroupNode) -> None:
    """The sum of two longs is a long: the offset has expired long ago."""
    commit(node, commit_request({T0: 1}, retention_time_ms=2**63 - 1), 2)
    (value,) = [r.value for r in node.log()]
    assert value is not None
    expiry = int.from_bytes(value[-8:], "big", signed=True)
    assert expiry == node.now_ms + 2**63 - 1 - 2**64


def test_the_leader_epoch_comes_back_from_v6_on(node: GroupNode) -> None:
    for version, epoch in ((5, -1), (6, 4)):
        commit(node, commit_request({T0: 1}, leader_epoch=4), version)
        answer = node.ask(fetch_request({"t": [0]}))
        assert answer.groups[0].topics[0].partitions[0].committed_leader_epoch == epoch


def test_null_metadata_comes_back_empty(node: GroupNode) -> None:
    commit(node, commit_request({T0: 1}, metadata=None))
    answer = node.ask(fetch_request({"t": [0]}))
    assert answer.groups[0].topics[0].partitions[0].metadata == ""


def test_a_commit_counts_as_a_sign_of_life(node: GroupNode) -> None:
    (member,) = node.stable()
    for _ in range(3):
        node.advance(SESSION_MS - 1)
        assert commit(node, commit_request({T0: 1}, "g", member, 1)) == [E.NONE]
    assert node.ask(heartbeat_request("g", member, 1)).error_code == E.NONE


def test_topics_named_twice_are_taken_together_only_if_something_was_refused(
    node: GroupNode,
) -> None:
    """An oddity of Kafka's, but the answer is to have the shape that its clients see there."""

    def answered(*partitions: int) -> list[list[int]]:
        lines = [
            OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(p, 1)])
            for p in partitions
        ]
        response = node.ask(OffsetCommitRequest(group_id="g", topics=lines))
        return [[p.partition_index for p in topic.partitions] for topic in response.topics]

    assert answered(0, 1) == [[0], [1]]
    assert answered(0, 9, 1) == [[9, 0, 1]]


def test_one_partition_that_a_member_does_not_own_refuses_all() -> None:
    """KAFKA-19779: an older epoch may commit for what the member has owned since then."""
    node = StreamsNode()
    node.joins("g", "a")
    node.joins("g", "b")
    node.beats("g", "a", 2, {"0": [0, 1, 2]})
    kept = node.beats("g", "a", 2, {"0": [0, 1]})
    assert kept.member_epoch == 3
    for partitions, error in (([0, 1], E.NONE), ([0, 2], E.STALE_MEMBER_EPOCH)):
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=2,
            member_id="a",
            topics=[
                OffsetCommitRequestTopic(
                    name="t", partitions=[OffsetCommitRequestPartition(n, 5) for n in partitions]
                )
            ],
        )
        [topic] = node.ask(request, 9).topics
        assert [each.error_code for each in topic.partitions] == [error, error]
    assert node.shard("g", 1).offsets.get("g", "t", 2) is None
