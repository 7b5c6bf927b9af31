"""Selected topics and partitions of a message; the others stay as they are."""

from __future__ import annotations

from mockbroker.core.faults.partial import (
    Selection,
    fresh,
    merge,
    narrows,
    part,
    put_error,
)
from mockbroker.core.faults.rows import request_rows, response_rows
from mockbroker.core.ids import ZERO_UUID
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declare import GROUP_ID
from mockbroker_protocol.entities import Target
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.support.asking import produce

PRODUCE = request_rows(ApiKey.PRODUCE)
LIST_OFFSETS = response_rows(ApiKey.LIST_OFFSETS)


def selected(*partitions: int, topic: str = "orders") -> Selection:
    return Selection(Target(topic, ZERO_UUID, index) for index in partitions)


def offsets(**topics: dict[int, int]) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name, [ListOffsetsPartitionResponse(i, 0, -1, o) for i, o in each.items()]
            )
            for name, each in topics.items()
        ]
    )


def told(response: ListOffsetsResponse) -> dict[str, dict[int, tuple[int, int]]]:
    return {
        topic.name: {p.partition_index: (p.error_code, p.offset) for p in topic.partitions}
        for topic in response.topics
    }


def test_a_request_is_split_into_its_selected_part_and_the_rest() -> None:
    request = produce(0, 1, 2)
    chosen = part(request, PRODUCE, selected(1), selected=True)
    left = part(request, PRODUCE, selected(1), selected=False)
    assert chosen is not None
    assert left is not None
    assert [p.index for p in chosen.topic_data[0].partition_data] == [1]
    assert [p.index for p in left.topic_data[0].partition_data] == [0, 2]
    assert [p.index for p in request.topic_data[0].partition_data] == [0, 1, 2]
    assert chosen.topic_data[0].partition_data[0].records is not None


def test_a_completely_selected_request_leaves_no_rest() -> None:
    assert part(produce(0, 1), PRODUCE, selected(0, 1), selected=False) is None
    assert part(produce(0), PRODUCE, selected(0, topic="other"), selected=True) is None


def test_errors_replace_parts_of_an_answer() -> None:
    answer = offsets(orders={0: 10, 1: 11}, other={0: 12})
    blanks: dict[str, dict[str, object]] = {"ListOffsetsPartitionResponse": {"offset": -1}}
    changed = put_error(answer, LIST_OFFSETS, selected(1), 6, blanks, "")
    assert told(changed) == {"orders": {0: (0, 10), 1: (6, -1)}, "other": {0: (0, 12)}}
    assert told(answer) == {"orders": {0: (0, 10), 1: (0, 11)}, "other": {0: (0, 12)}}


def test_answers_are_merged_by_topic_and_partition() -> None:
    merged = merge(offsets(a={0: 1, 1: 2}), offsets(a={1: 9, 2: 3}, b={0: 4}), LIST_OFFSETS)
    assert told(merged) == {"a": {0: (0, 1), 1: (0, 9), 2: (0, 3)}, "b": {0: (0, 4)}}


def test_a_copy_shares_only_immutable_parts() -> None:
    request = produce(0)
    copy = fresh(request)
    assert copy == request
    assert copy.topic_data[0] is not request.topic_data[0]
    records = request.topic_data[0].partition_data[0].records
    assert copy.topic_data[0].partition_data[0].records is records


# -- some of several groups ------------------------------------------------------------------------

FETCH_OF = request_rows(ApiKey.OFFSET_FETCH)
FETCHED = response_rows(ApiKey.OFFSET_FETCH)
ONLY_B = Selection(None, {GROUP_ID: ["b"]})


def fetch(**groups: dict[str, list[int]]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    OffsetFetchRequestTopics(t, partition_indexes=i) for t, i in topics.items()
                ],
            )
            for group, topics in groups.items()
        ]
    )


def asked(request: OffsetFetchRequest | None) -> dict[str, dict[str, list[int]]]:
    assert request is not None
    return {
        group.group_id: {topic.name: topic.partition_indexes for topic in group.topics or ()}
        for group in request.groups
    }


def test_a_request_is_split_by_groups() -> None:
    request = fetch(a={"t": [0]}, b={"t": [0, 1]})
    assert asked(part(request, FETCH_OF, ONLY_B, selected=True)) == {"b": {"t": [0, 1]}}
    assert asked(part(request, FETCH_OF, ONLY_B, selected=False)) == {"a": {"t": [0]}}


def test_a_request_is_split_by_groups_and_partitions_at_once() -> None:
    request = fetch(a={"t": [0]}, b={"t": [0, 1], "u": [0]}, c={})
    chosen = Selection([Target("t", ZERO_UUID, 1)], {GROUP_ID: ["b"]})
    assert asked(part(request, FETCH_OF, chosen, selected=True)) == {"b": {"t": [1]}}
    left = part(request, FETCH_OF, chosen, selected=False)
    assert asked(left) == {"a": {"t": [0]}, "b": {"t": [0], "u": [0]}, "c": {}}


def test_a_selection_by_ids_narrows_only_requests_that_name_others_too() -> None:
    assert narrows(fetch(a={}, b={}), FETCH_OF, ONLY_B)
    assert not narrows(fetch(b={}), FETCH_OF, ONLY_B)
    assert not narrows(OffsetFetchRequest(group_id="b"), FETCH_OF, ONLY_B)


def test_answers_are_merged_within_their_group() -> None:
    def answer(**groups: dict[int, int]) -> OffsetFetchResponse:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group,
                    [
                        OffsetFetchResponseTopics(
                            "t",
                            partitions=[OffsetFetchResponsePartitions(i, o) for i, o in at.items()],
                        )
                    ],
                )
                for group, at in groups.items()
            ]
        )

    merged = merge(answer(a={0: 1}, b={0: 2, 1: 3}), answer(b={1: 9}, c={0: 4}), FETCHED)
    assert merged == answer(a={0: 1}, b={0: 2, 1: 9}, c={0: 4})
    refused = OffsetFetchResponse(groups=[OffsetFetchResponseGroup("a", error_code=16)])
    assert merge(answer(a={0: 1}), refused, FETCHED) == refused


def test_resources_are_selected_by_kind_and_name() -> None:
    """A topic, a broker and a group may all be called 1."""
    rows = request_rows(ApiKey.DESCRIBE_CONFIGS)
    request = DescribeConfigsRequest([DescribeConfigsResource(n, "1") for n in (2, 4, 32)])

    def chosen(selection: Selection) -> list[int]:
        found = part(request, rows, selection, selected=True)
        return [] if found is None else [each.resource_type for each in found.resources]

    assert chosen(Selection([Target("1", ZERO_UUID, -1)])) == [2]
    assert chosen(Selection(None, {GROUP_ID: ["1"]})) == [32]
    assert chosen(Selection(None, {GROUP_ID: ["2"]})) == []
    assert chosen(Selection(None)) == [2, 4, 32]
