"""DescribeTopicPartitions: pages of partitions in order of name."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.partition import NO_LEADER
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
    TopicRequest,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(3)
    node.cluster.create_topic("b", assignments={n: [1, 2] for n in range(3)})
    node.cluster.create_topic("a", assignments={0: [2, 3]})
    node.cluster.create_topic("c", assignments={0: [3, 1]})
    return node


def describe(
    node: Node, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        [TopicRequest(name) for name in names],
        limit,
        None if cursor is None else RequestCursor(*cursor),
    )
    response = ask(node, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def pages(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


def cursor_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_no_name_means_all_topics_in_order(node):
    response = describe(node)
    assert pages(response) == [("a", [0]), ("b", [0, 1, 2]), ("c", [0])]
    assert response.next_cursor is None


def test_named_topics_come_in_order_once_each(node):
    assert pages(describe(node, "c", "a", "c")) == [("a", [0]), ("c", [0])]


@pytest.mark.parametrize(
    ("limit", "page", "cursor"),
    [
        (1, [("a", [0])], ("b", 0)),
        (2, [("a", [0]), ("b", [0])], ("b", 1)),
        (4, [("a", [0]), ("b", [0, 1, 2])], ("c", 0)),
        (5, [("a", [0]), ("b", [0, 1, 2]), ("c", [0])], None),
        (0, [("a", [0])], ("b", 0)),
        (-1, [("a", [0])], ("b", 0)),
    ],
)
def test_a_page_ends_at_the_limit_and_says_where_to_go_on(node, limit, page, cursor):
    response = describe(node, limit=limit)
    assert (pages(response), cursor_of(response)) == (page, cursor)


def test_following_the_cursor_tells_every_partition_once(node):
    seen, cursor = [], None
    for _ in range(9):
        response = describe(node, limit=2, cursor=cursor)
        seen += [(name, index) for name, indexes in pages(response) for index in indexes]
        cursor = cursor_of(response)
        if cursor is None:
            break
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_the_broker_has_a_limit_of_its_own():
    node = nodes(1, max_request_partition_size_limit="2")
    node.cluster.create_topic("t", 5)
    response = describe(node, limit=1000)
    assert (pages(response), cursor_of(response)) == ([("t", [0, 1])], ("t", 2))


@pytest.mark.parametrize(
    ("names", "cursor", "page"),
    [
        ((), ("b", 2), [("b", [2]), ("c", [0])]),
        ((), ("b", 9), [("b", []), ("c", [0])]),
        ((), ("bb", 4), [("c", [0])]),
        (("a", "c"), ("c", 0), [("c", [0])]),
    ],
)
def test_a_cursor_skips_what_comes_before_it(node, names, cursor, page):
    assert pages(describe(node, *names, cursor=cursor)) == page


@pytest.mark.parametrize("cursor", [("c", -1), ("b", 0)])
def test_a_cursor_off_the_topics_named_is_refused(node, cursor):
    response = describe(node, "a", "c", cursor=cursor)
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("c", ErrorCode.INVALID_REQUEST),
    ]
    assert describe(node, cursor=("a", -1)).topics == []


def test_missing_topics_are_told_with_their_error(node):
    none, bad = describe(node, "none", "x/y").topics
    assert (none.error_code, bad.error_code) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    )
    assert none.topic_id == bytes(16)
    assert none.topic_authorized_operations == 3576
    assert list(node.cluster.topics) == ["b", "a", "c"]


@pytest.mark.covers("S33")
def test_a_partition_is_told_with_empty_lists_of_eligible_leaders(node):
    (topic,) = describe(node, "a").topics
    (partition,) = topic.partitions
    assert (topic.topic_id, topic.is_internal) == (node.cluster.topics["a"].topic_id, False)
    assert (partition.leader_id, partition.leader_epoch) == (2, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2, 3], [2, 3])
    assert partition.eligible_leader_replicas == partition.last_known_elr == []
    assert partition.offline_replicas == []


def test_a_leaderless_partition_is_no_error_here(node):
    (stored,) = node.cluster.topics["a"].partitions
    node.cluster.brokers[3].fenced = True
    stored.become_leader(NO_LEADER, 1, [])
    node.cluster.metadata.changed()
    (partition,) = describe(node, "a").topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, -1)
    assert partition.offline_replicas == [3]
