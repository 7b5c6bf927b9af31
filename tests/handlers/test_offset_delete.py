"""OffsetDelete: no offsets of topics to which a member is subscribed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.support.group_node import (
    GroupNode,
    commit_request,
    fetch_request,
    leave_request,
    subscription,
)

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    node = GroupNode()
    node.topic("u", 1)
    return node


def delete_request(wanted: Mapping[str, list[int]], group: str = "g") -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(p) for p in partitions])
            for name, partitions in wanted.items()
        ],
    )


def outcome(node: GroupNode, wanted: Mapping[str, list[int]]) -> dict[tuple[str, int], int]:
    response = node.ask(delete_request(wanted))
    assert response.error_code == 0
    return {
        (t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions
    }


def offsets(node: GroupNode) -> dict[tuple[str, int], int]:
    topics = node.ask(fetch_request(None)).groups[0].topics
    return {(t.name, p.partition_index): p.committed_offset for t in topics for p in t.partitions}


def test_errors_of_the_whole_request(node: GroupNode) -> None:
    """They hide even partitions that do not exist."""
    wanted = {"nope": [0], "t": [0]}
    assert node.ask(delete_request(wanted, "")) == OffsetDeleteResponse(
        error_code=E.INVALID_GROUP_ID
    )
    assert node.ask(delete_request(wanted)) == OffsetDeleteResponse(error_code=E.GROUP_ID_NOT_FOUND)
    node.stable(protocol_type="connect", protocols={"range": b""})
    assert node.ask(delete_request(wanted)) == OffsetDeleteResponse(error_code=E.NON_EMPTY_GROUP)
    node.shard().loading = True
    assert node.ask(delete_request(wanted)).error_code == E.COORDINATOR_LOAD_IN_PROGRESS


def test_offsets_of_an_empty_group_go(node: GroupNode) -> None:
    node.ask(commit_request({("t", 0): 1, ("t", 1): 2, ("u", 0): 3}))
    before = len(node.log())
    wanted = {"t": [0, 2, 9], "nope": [0]}
    assert outcome(node, wanted) == {
        ("t", 9): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("t", 0): E.NONE,
        ("t", 2): E.NONE,
    }
    assert offsets(node) == {("t", 1): 2, ("u", 0): 3}
    tombstones = node.log()[before:]
    assert [(r.key, r.value) for r in tombstones] == [(node.log()[0].key, None)]


def test_topics_that_a_member_reads_are_kept(node: GroupNode) -> None:
    (member,) = node.stable(protocols={"range": subscription("t")})
    request = commit_request({("t", 0): 1, ("u", 0): 3}, "g", member, 1)
    node.ask(request)
    assert outcome(node, {"t": [0], "u": [0]}) == {
        ("t", 0): E.GROUP_SUBSCRIBED_TO_TOPIC,
        ("u", 0): E.NONE,
    }
    assert offsets(node) == {("t", 0): 1}
    node.ask(leave_request("g", member))
    assert outcome(node, {"t": [0]}) == {("t", 0): E.NONE}
    assert offsets(node) == {}


def test_a_subscription_that_cannot_be_read_keeps_everything(node: GroupNode) -> None:
    node.stable(protocols={"range": b"\x00\x00\x00\x00\x00\x01"})
    assert outcome(node, {"u": [0]}) == {("u", 0): E.GROUP_SUBSCRIBED_TO_TOPIC}
