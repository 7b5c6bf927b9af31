"""The errors that rules put into answers to ShareFetch and ShareAcknowledge (KIP-932).

The handler sees each request, because the share session counts requests. It gets the request
without the refused acknowledgements. A rule that selects acknowledgements by their type refuses
only these; the fetch of the same request goes on. Without that, a refused partition of a ShareFetch
is answered without its records; they stay acquired until their lock ends.
"""

from __future__ import annotations

from typing import Any

from mockbroker.core.faults.partial import Selection, fresh
from mockbroker.core.faults.share_facts import SHARE_FETCH
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching


def without_acknowledgements(api_key: int, request: Any, selection: Selection) -> Any:
    """A copy of a request without the acknowledgements of the selected partitions."""
    left = fresh(request)
    for topic in left.topics:
        chosen = selection.partitions(None, topic.topic_id) or ()
        refused = [row for row in topic.partitions if row.partition_index in chosen]
        for row in refused:
            row.acknowledgement_batches = []
        if api_key != SHARE_FETCH:  # a partition without acknowledgements would get a row
            topic.partitions = [row for row in topic.partitions if row not in refused]
    return left


def with_errors(
    api_key: int, response: Any, selection: Selection, error: ErrorCode, message: str | None
) -> Any:
    """A copy of an answer with an error in the selected partitions."""
    changed = fresh(response)
    for target in selection.targets:
        topic = _topic(api_key, changed, target.topic_id)
        rows = topic.partitions
        indexes = [row.partition_index for row in rows]
        if target.partition not in indexes:
            indexes.append(target.partition)
            rows.append(_row(api_key, target.partition))
        at = indexes.index(target.partition)
        if api_key == SHARE_FETCH and selection.of_acknowledgements:
            rows[at].acknowledge_error_code = int(error)
            rows[at].acknowledge_error_message = message
        else:
            rows[at] = _row(api_key, target.partition)
            rows[at].error_code, rows[at].error_message = int(error), message
    return changed


def _topic(api_key: int, response: Any, topic_id: bytes) -> Any:
    for topic in response.responses:
        if topic.topic_id == topic_id:
            return topic
    new: Any = (
        fetching.ShareFetchableTopicResponse(topic_id, [])
        if api_key == SHARE_FETCH
        else acknowledging.ShareAcknowledgeTopicResponse(topic_id, [])
    )
    response.responses.append(new)
    return new


def _row(api_key: int, partition: int) -> Any:
    if api_key == SHARE_FETCH:
        return fetching.PartitionData(partition, records=b"")
    return acknowledging.PartitionData(partition)
