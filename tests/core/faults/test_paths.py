"""Fields by path, through structs and arrays."""

from __future__ import annotations

from mockbroker.core.faults.paths import (
    arrays_at,
    dotted_paths,
    request_shape,
    response_shape,
    values_at,
)
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)


def test_paths_are_written_with_brackets_for_arrays() -> None:
    paths = set(dotted_paths(request_shape(ApiKey.PRODUCE)))
    assert {"acks", "topic_data[]", "topic_data[].partition_data[].index"} <= paths
    assert "throttle_time_ms" in set(dotted_paths(response_shape(ApiKey.PRODUCE)))


REQUEST = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup("a", topics=[OffsetFetchRequestTopics("t", partition_indexes=[1])]),
        OffsetFetchRequestGroup("b", topics=None),
        OffsetFetchRequestGroup("c", topics=[]),
    ]
)


def test_values_are_found_in_every_element_and_null_has_none() -> None:
    assert list(values_at(REQUEST, ("groups", "group_id"))) == ["a", "b", "c"]
    assert list(values_at(REQUEST, ("groups", "topics", "partition_indexes"))) == [1]
    assert list(values_at(REQUEST, ("require_stable",))) == [False]


def test_arrays_are_found_themselves() -> None:
    found = list(arrays_at(REQUEST, ("groups", "topics")))
    assert len(found) == 2
    assert found[0] is REQUEST.groups[0].topics
    assert found[1] == []
