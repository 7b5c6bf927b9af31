"""WriteTxnMarkers (27): write the markers of transactions to partitions that this broker leads.

Coordinators send it to leaders. An administrator sends it to end a hanging transaction, which has
no coordinator any more (`Admin.abortTransaction`).
"""

from __future__ import annotations

from functools import partial

from mockbroker.core.security.acls import AclOperation
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import CombinedReply, Parked, RequestContext, api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

VERSION_SINCE = 2


@api(
    ApiKey.WRITE_TXN_MARKERS,
    versions=(1, 2),
    authorize=clusterwide(
        AclOperation.ALTER,
        AclOperation.CLUSTER_ACTION,
        has_message=False,
        otherwise=" for every partition",
    ),
)
def write_txn_markers(
    ctx: RequestContext, request: WriteTxnMarkersRequest
) -> Parked[WriteTxnMarkersResponse]:
    """Append the markers; answer when all are replicated."""
    by_producer: dict[int, Errors] = {}
    combined = CombinedReply(len(request.markers), lambda: _response(by_producer))

    def done(producer_id: int, errors: Errors) -> None:
        by_producer.setdefault(producer_id, {}).update(errors)
        combined.part_done()

    for line in request.markers:
        marker = Marker(
            line.producer_id,
            line.producer_epoch,
            line.transaction_result,
            line.coordinator_epoch,
            line.transaction_version if ctx.api_version >= VERSION_SINCE else 0,
        )
        partitions = tuple(
            (topic.name, index) for topic in line.topics for index in topic.partition_indexes
        )
        write_markers(ctx.broker, marker, partitions, partial(done, line.producer_id))
    return combined.reply


def _response(by_producer: dict[int, Errors]) -> WriteTxnMarkersResponse:
    response = WriteTxnMarkersResponse(markers=[])
    for producer_id, errors in by_producer.items():
        topics: dict[str, WritableTxnMarkerTopicResult] = {}
        for (topic, index), error in errors.items():
            line = topics.get(topic)
            if line is None:
                line = topics[topic] = WritableTxnMarkerTopicResult(name=topic, partitions=[])
            line.partitions.append(WritableTxnMarkerPartitionResult(index, error))
        response.markers.append(WritableTxnMarkerResult(producer_id, list(topics.values())))
    return response
