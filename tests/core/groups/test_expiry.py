"""Offsets outlive their retention only where nobody needs them, and empty groups go with them."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.expiry import expire_group
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol import ErrorCode
from tests.support.group_node import (
    SESSION_MS,
    GroupNode,
    commit_request,
    expire_all,
    heartbeat_request,
    join_request,
    leave_request,
    subscription,
)

MINUTE = 60_000
RETENTION = 10 * MINUTE


@pytest.fixture
def node() -> GroupNode:
    """Retention of ten minutes; the regular check never comes in the way."""
    configs = {
        "offsets.retention.minutes": "10",
        "offsets.retention.check.interval.ms": "999999999",
    }
    node = GroupNode(configs=configs)
    node.topic("u", 1)
    return node


def expire(node: GroupNode) -> None:
    expire_all(node, RETENTION)


def keys(node: GroupNode, group: str = "g") -> list[tuple[str, int]]:
    return node.shard(group).offsets.keys_of_group(group)


def live(node: GroupNode, member: str, generation: int, for_ms: int) -> None:
    """Let time pass while the member heartbeats."""
    for _ in range(for_ms // (SESSION_MS // 2)):
        node.advance(SESSION_MS // 2)
        answer = node.ask(heartbeat_request("g", member, generation))
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


def test_in_a_simple_group_the_age_counts_from_the_commit(node: GroupNode) -> None:
    node.ask(commit_request({("t", 0): 1}))
    node.advance(MINUTE)
    node.ask(commit_request({("t", 1): 1}))
    node.advance(RETENTION - MINUTE - 1)
    expire(node)
    assert keys(node) == [("t", 0), ("t", 1)]
    node.advance(1)
    expire(node)
    assert keys(node) == [("t", 1)]
    assert node.log()[-1].value is None
    node.advance(MINUTE)
    expire(node)
    assert "g" not in node.shard().groups
    assert [record.key[:2] for record in node.log()[-2:] if record.key] == [b"\0\1", b"\0\2"]


def test_in_an_empty_group_the_age_counts_from_when_it_became_empty(node: GroupNode) -> None:
    (member,) = node.stable()
    node.ask(commit_request({("t", 0): 1}, "g", member, 1))
    live(node, member, 1, 3 * RETENTION)
    node.ask(leave_request("g", member))
    node.advance(RETENTION - 1)
    expire(node)
    assert keys(node) == [("t", 0)]
    node.advance(1)
    expire(node)
    assert "g" not in node.shard().groups


def test_in_a_stable_group_only_topics_nobody_reads_expire(node: GroupNode) -> None:
    (member,) = node.stable(protocols={"range": subscription("t")})
    node.ask(commit_request({("t", 0): 1, ("u", 0): 1}, "g", member, 1))
    live(node, member, 1, RETENTION)
    expire(node)
    assert keys(node) == [("t", 0)]
    assert node.shard().groups["g"].state.value == "Stable"


def test_nothing_expires_while_a_round_is_under_way(node: GroupNode) -> None:
    (member,) = node.stable(protocols={"range": subscription("t")}, rebalance_timeout_ms=10**9)
    node.ask(commit_request({("u", 0): 1}, "g", member, 1))
    node.send(join_request("g", node.ask(join_request()).member_id))
    live(node, member, 1, RETENTION)
    expire(node)
    assert keys(node) == [("u", 0)]


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect"},
        {"protocols": {"range": b"garbage"}},
    ],
)
def test_nothing_expires_in_a_stable_group_whose_topics_are_not_known(
    node: GroupNode, fields: dict[str, object]
) -> None:
    (member,) = node.stable(**fields)
    node.ask(commit_request({("u", 0): 1}, "g", member, 1))
    live(node, member, 1, RETENTION)
    expire(node)
    assert keys(node) == [("u", 0)]


def test_an_expiry_of_its_own_outranks_the_retention(node: GroupNode) -> None:
    node.ask(commit_request({("t", 0): 1}, retention_time_ms=MINUTE), 4)
    node.ask(commit_request({("t", 1): 1}, retention_time_ms=5 * RETENTION), 4)
    node.advance(MINUTE)
    expire(node)
    assert keys(node) == [("t", 1)]
    node.advance(4 * RETENTION)
    expire(node)
    assert keys(node) == [("t", 1)]


def test_what_a_transaction_has_pending_does_not_expire(node: GroupNode) -> None:
    node.ask(commit_request({("t", 0): 1}))
    store = node.shard().offsets
    store.commit_pending(7, "g", "t", 0, OffsetAndMetadata(2))
    node.advance(RETENTION)
    expire(node)
    assert keys(node) == [("t", 0)]
    store.end_transaction(7, committed=False)
    store.commit_pending(7, "g", "t", 1, OffsetAndMetadata(2))
    expire(node)
    assert "g" in node.shard().groups
    assert keys(node) == [("t", 1)]


def test_a_group_without_members_and_offsets_goes_at_the_next_check() -> None:
    """Empty first, gone at the next check of offsets.retention.check.interval.ms."""
    node = GroupNode(configs={"offsets.retention.check.interval.ms": str(10 * MINUTE)})
    (member,) = node.stable()
    node.advance(SESSION_MS)
    assert node.shard().groups["g"].state.value == "Empty"
    node.advance(10 * MINUTE - SESSION_MS - 1)
    assert "g" in node.shard().groups
    node.advance(1)
    assert "g" not in node.shard().groups
    assert member


def test_a_group_with_offsets_stays(node: GroupNode) -> None:
    (member,) = node.stable()
    node.ask(commit_request({("t", 0): 1}, "g", member, 1))
    node.ask(leave_request("g", member))
    expire(node)
    assert node.shard().groups["g"].state.value == "Empty"


def test_the_next_look_is_due_when_the_next_offset_expires(node: GroupNode) -> None:
    """None if no offset is left, and 0 if the log did not take the tombstones."""
    node.ask(commit_request({("t", 0): 1}))
    assert expire_group(node.shard(), "g", RETENTION) == RETENTION
    node.advance(RETENTION)
    topic = node.cluster.topics[GROUP_METADATA_TOPIC]
    configs = dict(topic.configs.overrides)
    node.cluster.replace_topic_configs(topic, configs | {"max.message.bytes": "1"})
    assert (expire_group(node.shard(), "g", RETENTION), keys(node)) == (0, [("t", 0)])
    node.cluster.replace_topic_configs(topic, configs)
    assert (expire_group(node.shard(), "g", RETENTION), keys(node)) == (None, [])


def test_the_next_look_is_for_the_offset_that_expires_first(node: GroupNode) -> None:
    node.ask(commit_request({("t", 0): 1}))
    node.advance(MINUTE)
    node.ask(commit_request({("t", 1): 1, ("u", 0): 1}))
    assert expire_group(node.shard(), "g", RETENTION) == RETENTION - MINUTE
