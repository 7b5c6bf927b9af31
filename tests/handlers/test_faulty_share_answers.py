"""Errors that rules put into answers to ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from mockbroker.core.faults.partial import Selection
from mockbroker.handlers.faulty_share_answers import with_errors, without_acknowledgements
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.entities import Target
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching

TOPIC = bytes(15) + b"\1"
SECOND = [Target("t", TOPIC, 1)]
ERROR = ErrorCode.INVALID_RECORD_STATE
FETCH, ACKNOWLEDGE = int(ApiKey.SHARE_FETCH), int(ApiKey.SHARE_ACKNOWLEDGE)


def test_a_fetch_loses_the_refused_acknowledgements_and_keeps_its_partitions() -> None:
    batches = [fetching.AcknowledgementBatch(0, 0, [1])]
    partitions = [fetching.FetchPartition(index, batches) for index in range(3)]
    request = fetching.ShareFetchRequest("g", topics=[fetching.FetchTopic(TOPIC, partitions)])
    left = without_acknowledgements(FETCH, request, Selection(SECOND))
    counts = [len(each.acknowledgement_batches) for each in left.topics[0].partitions]
    assert counts == [1, 0, 1]
    assert all(each.acknowledgement_batches for each in request.topics[0].partitions)


def test_an_acknowledge_request_loses_the_refused_partitions() -> None:
    batches = [acknowledging.AcknowledgementBatch(0, 0, [1])]
    partitions = [acknowledging.AcknowledgePartition(index, batches) for index in range(3)]
    topics = [acknowledging.AcknowledgeTopic(TOPIC, partitions)]
    request = acknowledging.ShareAcknowledgeRequest("g", topics=topics)
    left = without_acknowledgements(ACKNOWLEDGE, request, Selection(SECOND))
    assert [each.partition_index for each in left.topics[0].partitions] == [0, 2]


def test_a_refused_acknowledgement_leaves_the_records_of_a_fetch() -> None:
    rows = [fetching.PartitionData(index, records=b"r") for index in range(2)]
    response = fetching.ShareFetchResponse(
        responses=[fetching.ShareFetchableTopicResponse(TOPIC, rows)]
    )
    selected = Selection(SECOND, of_acknowledgements=True)
    changed = with_errors(FETCH, response, selected, ERROR, "no")
    first, second = changed.responses[0].partitions
    assert first.acknowledge_error_code == 0
    assert (second.acknowledge_error_code, second.acknowledge_error_message) == (ERROR, "no")
    assert (second.error_code, second.records) == (0, b"r")
    refused = with_errors(FETCH, response, Selection(SECOND), ERROR, None)
    assert (refused.responses[0].partitions[1].error_code, rows[1].error_code) == (ERROR, 0)
    assert refused.responses[0].partitions[1].records == b""


def test_a_partition_without_a_row_gets_one() -> None:
    response = acknowledging.ShareAcknowledgeResponse(responses=[])
    changed = with_errors(ACKNOWLEDGE, response, Selection(SECOND), ERROR, None)
    (topic,) = changed.responses
    assert topic.topic_id == TOPIC
    assert [(row.partition_index, row.error_code) for row in topic.partitions] == [(1, ERROR)]
