"""Refusals of some parts of a request."""

from __future__ import annotations

from mockbroker.core.faults.partial import Selection
from mockbroker.handlers.faulty_answers import add_error_rows, error_for_all
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.entities import Target
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

ERROR = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_an_error_response_without_rows_gets_those_of_the_request() -> None:
    """Kafka's OffsetDeleteResponse for an exception has no topics."""
    partitions = [OffsetDeleteRequestPartition(index) for index in (1, 3)]
    chosen = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("t", partitions)])
    header = RequestHeader(ApiKey.OFFSET_DELETE, 0, 1, "c")
    errors = error_for_all(header, chosen, ERROR, None)
    assert errors.topics == []
    selection = Selection([Target("t", bytes(16), index) for index in (1, 3)])
    add_error_rows(errors, chosen, int(ApiKey.OFFSET_DELETE), selection, ERROR, None)
    (topic,) = errors.topics
    assert topic.name == "t"
    found = [(each.partition_index, each.error_code) for each in topic.partitions]
    assert found == [(1, ERROR), (3, ERROR)]
