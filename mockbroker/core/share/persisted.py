"""The requests of a share partition to the share coordinator, and the meaning of their answers.

A share partition reads its state once, and writes each change. Its requests have one partition
each; the persister joins those that go to one coordinator.

Source: SharePartition.maybeInitialize, .writeShareGroupState, .fetchPersisterError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from mockbroker.core.errors import ApiError
from mockbroker.core.share.operations import READ, WRITE, each_result
from mockbroker.core.share.states import RecordState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.errors import ERROR_CODES
from mockbroker_protocol.messages import read_share_group_state as reading
from mockbroker_protocol.messages import write_share_group_state as writing

SharePartitionKey: TypeAlias = tuple[str, bytes, int]  # group id, topic id, index

UNINITIALIZED_START_OFFSET = -1  # the group has not read the partition yet
RECORD_STATES = frozenset(map(int, RecordState))

# The errors of the share coordinator, as clients get them; others are UNKNOWN_SERVER_ERROR.
CLIENT_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_HIDDEN = frozenset((ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION))


class WrittenState(NamedTuple):
    """The state of a range of records that is to be written."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


class WrittenPartition(NamedTuple):
    """The state of a share partition beside its records."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


def read_request(key: SharePartitionKey, leader_epoch: int) -> reading.ReadShareGroupStateRequest:
    """The request for the state of a share partition."""
    group_id, topic_id, index = key
    return READ.request(group_id, [(topic_id, reading.PartitionData(index, leader_epoch))])


def read_result(
    key: SharePartitionKey, response: reading.ReadShareGroupStateResponse, name: str
) -> reading.PartitionResult:
    """The state of the share partition. Raises ApiError."""
    for topic in response.results:
        for result in topic.partitions:
            if (topic.topic_id, result.partition) == key[1:]:
                error = _client_error(result.error_code, result.error_message)
                if error is not None:
                    raise error
                return result
    raise read_failure(name)


def read_failure(name: str) -> ApiError:
    """The error for an answer that makes no sense."""
    text = f"Failed to initialize the share partition {name}"
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def write_request(
    key: SharePartitionKey, partition: WrittenPartition, states: Sequence[WrittenState]
) -> writing.WriteShareGroupStateRequest:
    """The request that writes states; adjacent ranges with equal states are one batch."""
    group_id, topic_id, index = key
    batches: list[writing.StateBatch] = []
    for first, last, state, count in states:
        before = batches[-1] if batches else None
        if (
            before is not None
            and before.last_offset + 1 == first
            and (before.delivery_state, before.delivery_count) == (state, count)
        ):
            before.last_offset = last
        else:
            batches.append(writing.StateBatch(first, last, int(state), count))
    data = writing.PartitionData(index, *partition, batches)
    return WRITE.request(group_id, [(topic_id, data)])


def write_error(
    key: SharePartitionKey, response: writing.WriteShareGroupStateResponse, name: str
) -> ApiError | None:
    """The error of a write, or None."""
    for topic_id, result in each_result(response):
        if (topic_id, result.partition) == key[1:]:
            return _client_error(result.error_code, result.error_message)
    text = f"Failed to write the share group state for share partition {name}"
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def _client_error(code: int, message: str | None) -> ApiError | None:
    """The client's error for one of the share coordinator."""
    if not code:
        return None
    error = ERROR_CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
    if error in _HIDDEN:
        message = "Unable to complete operation due to server error."
    return ApiError(CLIENT_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR), message)
