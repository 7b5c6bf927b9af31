"""WriteTxnMarkers (27): write the markers of transactions to partitions that this broker leads.

Coordinators send it to leaders. An administrator sends it to end a hanging transaction, which has
no coordinator any more (`Admin.abortTransaction`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mockbroker.core.security.acls import AclOperation
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import CombinedReply, Parked, RequestContext, api
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE, in_slices, settled
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.txn.events import TopicPartition

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
) -> WriteTxnMarkersResponse | Parked[WriteTxnMarkersResponse]:
    """Append the markers; answer when all are replicated."""
    return in_slices(ctx, request, _write(ctx, request), changes=True)


def _write(
    ctx: RequestContext, request: WriteTxnMarkersRequest
) -> Generator[Parked[Any] | None, None, WriteTxnMarkersResponse]:
    parts = list(_parts(ctx, request))
    by_producer: dict[int, Errors] = {}
    combined = CombinedReply(len(parts), lambda: _response(by_producer))
    written = 0

    def done(producer_id: int, errors: Errors) -> None:
        by_producer.setdefault(producer_id, {}).update(errors)
        combined.part_done()

    for marker, partitions in parts:
        write_markers(ctx.broker, marker, partitions, partial(done, marker.producer_id))
        written += 1 + len(partitions)
        if written >= PARTITIONS_PER_SLICE:
            written = 0
            yield None
    return (yield from settled(combined.reply))


def _parts(
    ctx: RequestContext, request: WriteTxnMarkersRequest
) -> Iterator[tuple[Marker, Sequence[TopicPartition]]]:
    """The markers, each with its partitions, or with as many of them as a slice has."""
    for line in request.markers:
        marker = Marker(
            line.producer_id,
            line.producer_epoch,
            line.transaction_result,
            line.coordinator_epoch,
            line.transaction_version if ctx.api_version >= VERSION_SINCE else 0,
        )
        partitions = [
            (topic.name, index) for topic in line.topics for index in topic.partition_indexes
        ]
        yield marker, partitions[:PARTITIONS_PER_SLICE]
        for start in range(PARTITIONS_PER_SLICE, len(partitions), PARTITIONS_PER_SLICE):
            yield marker, partitions[start : start + PARTITIONS_PER_SLICE]


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
