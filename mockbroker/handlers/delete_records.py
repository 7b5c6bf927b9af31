"""DeleteRecords (21): raise the log start offset of partitions on all replicas."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

from mockbroker.core.purgatory.delayed_replication import REQUEST_TIMED_OUT, DelayedReplication
from mockbroker.core.replication.partition import Partition
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import each_row, on_topic
from mockbroker.handlers.base import Parked, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE, in_slices, settled
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


class DeleteRecordsPartitionStatus(NamedTuple):
    """A partition whose low watermark must reach `offset`."""

    partition: Partition
    offset: int
    result: DeleteRecordsPartitionResult


@api(
    ApiKey.DELETE_RECORDS,
    versions=(0, 2),
    authorize=each_row(on_topic(AclOperation.DELETE)),
    refusal=Refusal(fixed={"DeleteRecordsPartitionResult": {"low_watermark": -1}}),
)
def delete_records(
    ctx: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Parked[DeleteRecordsResponse]:
    """Raise each log start offset; the response has the low watermark of each partition."""
    return in_slices(ctx, request, _delete(ctx, request), changes=True)


def _delete(
    ctx: RequestContext, request: DeleteRecordsRequest
) -> Generator[Parked[Any] | None, None, DeleteRecordsResponse]:
    response = DeleteRecordsResponse()
    waiting: list[DeleteRecordsPartitionStatus] = []
    handled = 0
    for wanted_topic in request.topics:
        topic = ctx.image.topics.get(wanted_topic.name)
        results: list[DeleteRecordsPartitionResult] = []
        response.topics.append(DeleteRecordsTopicResult(wanted_topic.name, results))
        for wanted in wanted_topic.partitions:
            handled += 1
            if handled % PARTITIONS_PER_SLICE == 0:
                yield None
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
            if partition.deleted:
                result.error_code = _UNKNOWN_TOPIC_OR_PARTITION
                continue
            if partition.leader_id != ctx.broker.node_id:
                lost = ctx.broker.log_dirs.is_offline(partition)
                result.error_code = _STORAGE_ERROR if lost else _NOT_LEADER
                continue
            result.error_code, offset = partition.delete_records(wanted.offset)
            if result.error_code:
                continue
            result.low_watermark = partition.low_watermark
            if result.low_watermark < offset:
                waiting.append(DeleteRecordsPartitionStatus(partition, offset, result))
    if not waiting:
        return response
    delayed = DelayedDeleteRecords(ctx.broker.node_id, response, waiting)
    delayed.start(ctx.cluster.runtime.timers, ctx.now_ms + request.timeout_ms)
    return (yield from settled(delayed.reply))


class DelayedDeleteRecords(DelayedReplication[DeleteRecordsPartitionStatus]):
    """A reply that waits for low watermarks."""

    __slots__ = ("_node_id", "_response", "reply")

    def __init__(
        self,
        node_id: int,
        response: DeleteRecordsResponse,
        waiting: list[DeleteRecordsPartitionStatus],
    ) -> None:
        super().__init__(waiting)
        self._node_id = node_id
        self._response = response
        self.reply: Parked[DeleteRecordsResponse] = Parked()

    def error_of(self, wait: DeleteRecordsPartitionStatus) -> int | None:
        partition = wait.partition
        if partition.deleted:
            return _UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader_id != self._node_id:
            return _NOT_LEADER
        return _NONE if partition.low_watermark >= wait.offset else None

    def set_error(self, wait: DeleteRecordsPartitionStatus, error: int) -> None:
        # After a timeout the response has the low watermark too.
        known = error in (_NONE, REQUEST_TIMED_OUT)
        wait.result.error_code = error
        wait.result.low_watermark = wait.partition.low_watermark if known else INVALID_LOW_WATERMARK

    def on_complete(self) -> None:
        self.reply.complete(self._response)
