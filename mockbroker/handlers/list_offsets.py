"""ListOffsets (2): offsets of partitions by timestamp, or by a special value.

Special values are negative, and each has a first version. Before it, and for other negative values,
the error is UNSUPPORTED_VERSION. A consumer gets offsets up to the high watermark or last stable
offset, a replica or debugger up to the log end offset.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import Partition
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import each_row, on_topic
from mockbroker.handlers.base import Parked, api
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE, in_slices
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from mockbroker_protocol.records import RecordsError

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# ReplicaManager.timestampMinSupportedVersion
SPECIAL_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
TIERED = (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)

CONSUMER = -1
DEBUGGING_CONSUMER = -2
READ_COMMITTED = 1
OFFSET_NOT_AVAILABLE_SINCE = 5
NOTHING = (-1, -1, -1)

_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)
_UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_LEADER_NOT_AVAILABLE = int(ErrorCode.LEADER_NOT_AVAILABLE)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_UNSUPPORTED_VERSION = int(ErrorCode.UNSUPPORTED_VERSION)
_INVALID_REQUEST = int(ErrorCode.INVALID_REQUEST)
_OFFSET_NOT_AVAILABLE = int(ErrorCode.OFFSET_NOT_AVAILABLE)


@api(
    ApiKey.LIST_OFFSETS,
    versions=(1, 11),
    authorize=each_row(on_topic(AclOperation.DESCRIBE)),
)
def list_offsets(
    ctx: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Parked[ListOffsetsResponse]:
    """Answer each partition once; a partition named twice is refused."""
    return in_slices(ctx, request, _list(ctx, request))


def _list(
    ctx: RequestContext, request: ListOffsetsRequest
) -> Generator[None, None, ListOffsetsResponse]:
    topics = ctx.image.topics
    repeated = _repeated(request)
    refused: set[tuple[str, int]] = set()
    answers: dict[str, ListOffsetsTopicResponse] = {}
    handled = 0
    for wanted_topic in request.topics:
        name = wanted_topic.name
        topic = topics.get(name)
        answer = answers.get(name)
        if answer is None:
            answer = answers[name] = ListOffsetsTopicResponse(name)
        for wanted in wanted_topic.partitions:
            handled += 1
            if handled % PARTITIONS_PER_SLICE == 0:
                yield None
            index = wanted.partition_index
            response = ListOffsetsPartitionResponse(index)
            if repeated and (name, index) in repeated:
                if (name, index) in refused:
                    continue
                refused.add((name, index))
                response.error_code = _INVALID_REQUEST
            elif not _supported(wanted.timestamp, ctx.header.api_version):
                response.error_code = _UNSUPPORTED_VERSION
            elif topic is None or not 0 <= index < len(topic.partitions):
                response.error_code = _UNKNOWN_TOPIC_OR_PARTITION
            else:
                _look_up(ctx, request, wanted, topic.partitions[index], response)
            answer.partitions.append(response)
    return ListOffsetsResponse(topics=list(answers.values()))


def _repeated(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    repeated: set[tuple[str, int]] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            if key in seen:
                repeated.add(key)
            seen.add(key)
    return repeated


def _supported(timestamp: int, api_version: int) -> bool:
    if timestamp >= 0:
        return True
    since = SPECIAL_SINCE.get(timestamp)
    return since is not None and api_version >= since


def _look_up(
    ctx: RequestContext,
    request: ListOffsetsRequest,
    wanted: ListOffsetsPartition,
    partition: Partition,
    response: ListOffsetsPartitionResponse,
) -> None:
    """Fill the response of one partition (Partition.fetchOffsetForTimestamp)."""
    replica = partition.replica(ctx.broker.node_id)
    if ctx.broker.log_dirs.is_offline(partition):
        response.error_code = _STORAGE_ERROR
        return
    if replica is None:
        response.error_code = _NOT_LEADER
        return
    error = partition.check_leader_epoch(wanted.current_leader_epoch)
    if (
        not error
        and request.replica_id != DEBUGGING_CONSUMER
        and partition.leader_id != ctx.broker.node_id
    ):
        error = _NOT_LEADER
    if error:
        response.error_code = error
        return
    log = replica.log
    fetchable = log.end_offset
    settled = True
    if request.replica_id == CONSUMER:
        # The high watermark of a new leader may be below the start of its epoch.
        settled = partition.leader_epoch_start_offset <= replica.high_watermark
        fetchable = replica.high_watermark
        if request.isolation_level == READ_COMMITTED:
            fetchable = min(fetchable, partition.last_stable_offset)
    timestamp = wanted.timestamp
    if timestamp == LATEST:
        if settled:
            response.offset, response.leader_epoch = fetchable, partition.leader_epoch
        else:
            response.error_code = _not_settled(ctx)
        return
    try:
        found_at, offset, epoch = _find(log, timestamp)
    except RecordsError:
        response.error_code = _UNKNOWN_SERVER_ERROR
        return
    if timestamp in (EARLIEST, EARLIEST_LOCAL) or -1 < offset < fetchable:
        response.timestamp, response.offset, response.leader_epoch = found_at, offset, epoch
    elif not settled and timestamp not in TIERED:
        response.error_code = _not_settled(ctx)


def _not_settled(ctx: RequestContext) -> int:
    known = ctx.header.api_version >= OFFSET_NOT_AVAILABLE_SINCE
    return _OFFSET_NOT_AVAILABLE if known else _LEADER_NOT_AVAILABLE


def _find(log: ReplicaLog, timestamp: int) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch); -1 for each if no record is found.

    There is no tiered storage: its values find nothing, and the local log is the whole log.
    """
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.start_offset, log.epochs.earliest(log.start_offset)
    if timestamp in TIERED:
        return NOTHING
    found = (
        log.find_max_timestamp() if timestamp == MAX_TIMESTAMP else log.find_timestamp(timestamp)
    )
    return NOTHING if found is None else found
