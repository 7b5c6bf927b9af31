"""OffsetFetch: three forms of answer, and unknown offsets."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tests.support.group_node import GroupNode, commit_request, fetch_request

E = ErrorCode


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


@pytest.fixture
def filled(node: GroupNode) -> GroupNode:
    request = commit_request({("t", 0): 10, ("t", 2): 30}, metadata="m", leader_epoch=5)
    node.ask(request)
    return node


@pytest.mark.parametrize("version", range(1, 8))
def test_one_group_before_v8(filled: GroupNode, version: int) -> None:
    """An offset that was never committed is -1, without an error."""
    epoch = 5 if version >= 5 else -1
    assert filled.ask(fetch_request({"t": [0, 1]}, version=version), version) == (
        OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    "t",
                    [
                        OffsetFetchResponsePartition(0, 10, epoch, "m", 0),
                        OffsetFetchResponsePartition(1, -1, -1, "", 0),
                    ],
                )
            ]
        )
    )


@pytest.mark.parametrize("version", range(8, 11))
def test_many_groups_since_v8(filled: GroupNode, version: int) -> None:
    id_ = filled.cluster.topics["t"].topic_id
    named = {"topic_id": id_} if version >= 10 else {"name": "t"}
    groups = [
        OffsetFetchRequestGroup(
            group_id=group,
            topics=[OffsetFetchRequestTopics(partition_indexes=[2, 1], **named)],
        )
        for group in ("g", "h")
    ]
    nothing = OffsetFetchResponsePartitions(1, -1, -1, "", 0)
    assert filled.ask(OffsetFetchRequest(groups=groups), version) == OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                "g",
                [
                    OffsetFetchResponseTopics(
                        partitions=[OffsetFetchResponsePartitions(2, 30, 5, "m", 0), nothing],
                        **named,
                    )
                ],
            ),
            OffsetFetchResponseGroup(
                "h",
                [
                    OffsetFetchResponseTopics(
                        partitions=[OffsetFetchResponsePartitions(2, -1, -1, "", 0), nothing],
                        **named,
                    )
                ],
            ),
        ]
    )


@pytest.mark.parametrize("version", range(2, 11))
def test_no_topics_means_all_that_is_committed(filled: GroupNode, version: int) -> None:
    response = filled.ask(fetch_request(None, version=version), version)
    topics = response.groups[0].topics if version >= 8 else response.topics
    (topic,) = topics
    assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [
        (0, 10),
        (2, 30),
    ]
    if version >= 10:
        assert topic.topic_id == filled.cluster.topics["t"].topic_id
    response = filled.ask(fetch_request(None, "other", version=version), version)
    assert not (response.groups[0].topics if version >= 8 else response.topics)


def test_no_topics_of_an_empty_list_is_nothing(filled: GroupNode) -> None:
    assert filled.ask(fetch_request({})).groups[0].topics == []


def test_an_unknown_topic_has_no_offset_and_that_is_no_error(filled: GroupNode) -> None:
    (topic,) = filled.ask(fetch_request({"nope": [3]})).groups[0].topics
    assert topic.partitions == [OffsetFetchResponsePartitions(3, -1, -1, "", 0)]


def test_an_unknown_topic_id_is_an_error_and_comes_last(filled: GroupNode) -> None:
    id_ = filled.cluster.topics["t"].topic_id
    group = OffsetFetchRequestGroup(
        group_id="g",
        topics=[
            OffsetFetchRequestTopics(topic_id=b"\x07" * 16, partition_indexes=[0]),
            OffsetFetchRequestTopics(topic_id=id_, partition_indexes=[0]),
        ],
    )
    found, unknown = filled.ask(OffsetFetchRequest(groups=[group]), 10).groups[0].topics
    assert found.partitions[0].committed_offset == 10
    assert unknown.topic_id == b"\x07" * 16
    assert unknown.partitions == [OffsetFetchResponsePartitions(0, -1, -1, "", E.UNKNOWN_TOPIC_ID)]


def test_an_offset_of_a_former_topic_of_the_same_name_does_not_count(node: GroupNode) -> None:
    """The commit names the id of a topic that has been deleted and created again since."""
    id_ = node.cluster.topics["t"].topic_id
    stale = OffsetAndMetadata(5, topic_id=b"\x06" * 16)
    node.shard().check_commit("g", "", None, -1, unknown_group=E.GROUP_ID_NOT_FOUND)
    node.shard().commit("g", [("t", 0, stale)])
    group = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(topic_id=id_, partition_indexes=[0])]
    )
    (topic,) = node.ask(OffsetFetchRequest(groups=[group]), 10).groups[0].topics
    assert topic.partitions[0].committed_offset == -1
    assert (
        node.ask(fetch_request({"t": [0]})).groups[0].topics[0].partitions[0].committed_offset == 5
    )


@pytest.mark.parametrize("version", range(1, 11))
def test_who_is_not_the_coordinator_says_so_where_the_version_has_room(version: int) -> None:
    node = GroupNode(racks=(None, None))
    index = node.cluster.find_coordinator_partition("g")
    partition = node.cluster.partition("__consumer_offsets", index)
    assert partition is not None
    request = fetch_request({"t": [0, 1]} if version < 10 else None, version=version)
    response = node.ask(request, version, broker=3 - partition.leader_id)
    if version >= 8:
        assert response.groups == [OffsetFetchResponseGroup("g", [], E.NOT_COORDINATOR)]
    elif version >= 2:
        assert response == OffsetFetchResponse(error_code=E.NOT_COORDINATOR)
    else:
        (topic,) = response.topics
        assert [(p.committed_offset, p.error_code) for p in topic.partitions] == [
            (-1, E.NOT_COORDINATOR)
        ] * 2


def test_a_loading_coordinator_says_so(node: GroupNode) -> None:
    node.shard().loading = True
    (group,) = node.ask(fetch_request(None)).groups
    assert (group.error_code, group.topics) == (E.COORDINATOR_LOAD_IN_PROGRESS, [])


@pytest.mark.parametrize("wanted", [{"t": [0, 2]}, None])
def test_an_offset_in_an_open_transaction_is_unstable_for_those_who_ask(
    filled: GroupNode, wanted: dict[str, list[int]] | None
) -> None:
    """88 on that partition alone, and only with RequireStable; the marker settles it."""
    store = filled.shard().offsets
    store.commit_pending(7, "g", "t", 0, OffsetAndMetadata(99, record_offset=50))

    def offsets(*, stable: bool) -> list[tuple[int, int]]:
        request = fetch_request(wanted, require_stable=stable)
        (topic,) = filled.ask(request).groups[0].topics
        return [(p.committed_offset, p.error_code) for p in topic.partitions]

    assert offsets(stable=True) == [(-1, E.UNSTABLE_OFFSET_COMMIT), (30, 0)]
    assert offsets(stable=False) == [(10, 0), (30, 0)]
    store.end_transaction(7, committed=True)
    assert offsets(stable=True) == [(99, 0), (30, 0)]
