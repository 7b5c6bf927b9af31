"""DeleteRecords (key 21): raise the log start of partitions and wait until all replicas have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.partition import Partition
from mockbroker.handlers.base import Parked, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext

INVALID_LOW_WATERMARK = -1

_NONE = 0
_UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_INVALID_TOPIC = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
_REQUEST_TIMED_OUT = int(ErrorCode.REQUEST_TIMED_OUT)


class _Waiting(NamedTuple):
    """A partition whose low watermark has to reach `offset`."""

    partition: Partition
    offset: int
    result: DeleteRecordsPartitionResult


@api(ApiKey.DELETE_RECORDS, versions=(0, 2))
def delete_records(
    ctx: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Parked[DeleteRecordsResponse]:
    """Move each log start; the answer tells the low watermark of each partition."""
    response = DeleteRecordsResponse()
    waiting: list[_Waiting] = []
    for wanted_topic in request.topics:
        topic = ctx.image.topics.get(wanted_topic.name)
        results: list[DeleteRecordsPartitionResult] = []
        response.topics.append(DeleteRecordsTopicResult(wanted_topic.name, results))
        for wanted in wanted_topic.partitions:
            index = wanted.partition_index
            result = DeleteRecordsPartitionResult(index, INVALID_LOW_WATERMARK)
            results.append(result)
            if topic is None or not 0 <= index < len(topic.partitions):
                result.error_code = _UNKNOWN_TOPIC_OR_PARTITION
                continue
            if topic.is_internal:
                result.error_code = _INVALID_TOPIC
                continue
            partition = topic.partitions[index]
            if partition.leader_id != ctx.broker.node_id:
                lost = ctx.broker.log_dirs.lost(partition)
                result.error_code = _STORAGE_ERROR if lost else _NOT_LEADER
                continue
            result.error_code, offset = partition.delete_records(wanted.offset)
            if result.error_code:
                continue
            result.low_watermark = partition.low_watermark
            if result.low_watermark < offset:
                waiting.append(_Waiting(partition, offset, result))
    if not waiting:
        return response
    return _PendingDelete(ctx, request.timeout_ms, response, waiting).start()


class _PendingDelete:
    """A reply that waits for the low watermarks (DelayedDeleteRecords)."""

    __slots__ = ("_node_id", "_parked", "_response", "_timer", "_waiting")

    def __init__(
        self,
        ctx: RequestContext,
        timeout_ms: int,
        response: DeleteRecordsResponse,
        waiting: list[_Waiting],
    ) -> None:
        self._node_id = ctx.broker.node_id
        self._response = response
        self._waiting = waiting
        self._parked: Parked[DeleteRecordsResponse] = Parked()
        self._timer = ctx.cluster.timers.call_at(ctx.now_ms + timeout_ms, self._time_out)

    def start(self) -> Parked[DeleteRecordsResponse]:
        for item in self._waiting:
            item.partition.watch(self)
        return self._parked

    def partition_changed(self, partition: Partition) -> None:
        for item in [item for item in self._waiting if item.partition is partition]:
            error = self._outcome(item)
            if error is None:
                continue
            item.result.error_code = error
            item.result.low_watermark = INVALID_LOW_WATERMARK if error else partition.low_watermark
            self._waiting.remove(item)
        if all(item.partition is not partition for item in self._waiting):
            partition.unwatch(self)
        if not self._waiting:
            self._finish()

    def _outcome(self, item: _Waiting) -> int | None:
        """The error code that settles one partition, or None while it has to wait on."""
        partition = item.partition
        if partition.deleted:
            return _UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader_id != self._node_id:
            return _NOT_LEADER
        return _NONE if partition.low_watermark >= item.offset else None

    def _time_out(self) -> None:
        for item in self._waiting:
            item.result.error_code = _REQUEST_TIMED_OUT
            item.result.low_watermark = item.partition.low_watermark
            item.partition.unwatch(self)
        self._finish()

    def _finish(self) -> None:
        self._timer.cancel()
        self._parked.complete(self._response)
