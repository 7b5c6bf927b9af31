"""Requests to the persister about share partitions of one group, and the errors in its responses.

Source: GroupMetadataManager.buildInitializeShareGroupStateRequest, GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.groups.assignors.base import partition_order, topic_order
from mockbroker.core.share.operations import DELETE, INITIALIZE, READ_SUMMARY, each_result
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.errors import ERROR_CODES
from mockbroker_protocol.messages import delete_share_group_state as deleting
from mockbroker_protocol.messages import initialize_share_group_state as initializing
from mockbroker_protocol.messages import read_share_group_state_summary as summing

if TYPE_CHECKING:
    from mockbroker.core.share.operations import StateResponse

UNINITIALIZED_OFFSET = -1  # PartitionFactory.UNINITIALIZED_START_OFFSET


def initialize_request(
    group_id: str, start_offsets: Mapping[bytes, Mapping[int, int]], epoch: int
) -> initializing.InitializeShareGroupStateRequest:
    """`start_offsets` by topic id and partition; `epoch` is the state epoch."""
    which = {topic_id: frozenset(offsets) for topic_id, offsets in start_offsets.items()}
    return INITIALIZE.request(
        group_id,
        (
            (topic_id, initializing.PartitionData(index, epoch, start_offsets[topic_id][index]))
            for topic_id, index in _in_order(which)
        ),
    )


def delete_request(
    group_id: str, which: Mapping[bytes, frozenset[int]]
) -> deleting.DeleteShareGroupStateRequest:
    rows = ((topic_id, deleting.PartitionData(index)) for topic_id, index in _in_order(which))
    return DELETE.request(group_id, rows)


def summary_request(
    group_id: str, which: Mapping[bytes, tuple[int, ...]]
) -> summing.ReadShareGroupStateSummaryRequest:
    return READ_SUMMARY.request(
        group_id,
        (
            (topic_id, summing.PartitionData(partition=index, leader_epoch=0))
            for topic_id, partitions in which.items()
            for index in partitions
        ),
    )


def _in_order(which: Mapping[bytes, frozenset[int]]) -> Iterator[tuple[bytes, int]]:
    """Topic ids and partitions in the order of Kafka's sets."""
    for topic_id in topic_order(which):
        for index in partition_order(which[topic_id]):
            yield topic_id, index


def errors_of(response: StateResponse) -> dict[bytes, dict[int, tuple[ErrorCode, str | None]]]:
    """The results by topic id and partition: error and message."""
    found: dict[bytes, dict[int, tuple[ErrorCode, str | None]]] = {}
    for topic_id, each in each_result(response):
        results = found.setdefault(topic_id, {})
        results[each.partition] = ERROR_CODES[each.error_code], each.error_message
    return found


def first_error(response: StateResponse) -> ErrorCode:
    """An error of a partition, or NONE."""
    for partitions in errors_of(response).values():
        for error, _ in partitions.values():
            if error is not ErrorCode.NONE:
                return error
    return ErrorCode.NONE


def partitions_of(response: StateResponse) -> dict[bytes, frozenset[int]]:
    """The partitions with a result, by topic id."""
    return {topic_id: frozenset(each) for topic_id, each in errors_of(response).items()}
