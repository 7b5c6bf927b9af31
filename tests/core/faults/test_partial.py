"""Some of the topics and partitions of a message, and the others left alone."""

from __future__ import annotations

from mockbroker.core.faults.layouts import dotted_paths, request_layout, response_layout
from mockbroker.core.faults.partial import Selection, Target, fresh, merge, part, put_error
from mockbroker.core.ids import ZERO_UUID
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.asking import produce

PRODUCE = request_layout(ApiKey.PRODUCE)
LIST_OFFSETS = response_layout(ApiKey.LIST_OFFSETS)


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


def test_a_request_is_split_in_what_is_selected_and_what_is_not() -> None:
    request = produce(0, 1, 2)
    chosen = part(request, PRODUCE, selected(1), selected=True)
    left = part(request, PRODUCE, selected(1), selected=False)
    assert chosen is not None
    assert left is not None
    assert [p.index for p in chosen.topic_data[0].partition_data] == [1]
    assert [p.index for p in left.topic_data[0].partition_data] == [0, 2]
    assert [p.index for p in request.topic_data[0].partition_data] == [0, 1, 2]
    assert chosen.topic_data[0].partition_data[0].records is not None


def test_nothing_is_left_of_a_request_that_is_selected_whole() -> None:
    assert part(produce(0, 1), PRODUCE, selected(0, 1), selected=False) is None
    assert part(produce(0), PRODUCE, selected(0, topic="other"), selected=True) is None


def test_errors_take_the_place_of_what_was_answered() -> None:
    answer = offsets(orders={0: 10, 1: 11}, other={0: 12})
    blanks: dict[str, dict[str, object]] = {"ListOffsetsPartitionResponse": {"offset": -1}}
    changed = put_error(answer, LIST_OFFSETS, selected(1), 6, blanks, "")
    assert told(changed) == {"orders": {0: (0, 10), 1: (6, -1)}, "other": {0: (0, 12)}}
    assert told(answer) == {"orders": {0: (0, 10), 1: (0, 11)}, "other": {0: (0, 12)}}


def test_answers_are_merged_by_topic_and_partition() -> None:
    merged = merge(offsets(a={0: 1, 1: 2}), offsets(a={1: 9, 2: 3}, b={0: 4}), LIST_OFFSETS)
    assert told(merged) == {"a": {0: (0, 1), 1: (0, 9), 2: (0, 3)}, "b": {0: (0, 4)}}


def test_a_copy_shares_only_what_nobody_writes_to() -> None:
    request = produce(0)
    copy = fresh(request)
    assert copy == request
    assert copy.topic_data[0] is not request.topic_data[0]
    records = request.topic_data[0].partition_data[0].records
    assert copy.topic_data[0].partition_data[0].records is records


def test_paths_are_written_with_brackets_for_arrays() -> None:
    paths = set(dotted_paths(PRODUCE.shape))
    assert {"acks", "topic_data[]", "topic_data[].partition_data[].index"} <= paths
