"""Requests to the persister about share partitions of one group, and the errors in its responses.

Source: GroupMetadataManager.buildInitializeShareGroupStateRequest, GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.groups.assignors.base import partition_order, topic_order
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.errors import ERROR_CODES
from mockbroker_protocol.messages import delete_share_group_state as deleting
from mockbroker_protocol.messages import initialize_share_group_state as initializing
from mockbroker_protocol.messages import read_share_group_state_summary as summing

if TYPE_CHECKING:
    from mockbroker.core.share.operations import StateResponse

UNINITIALIZED_OFFSET = -1  # PartitionFactory.UNINITIALIZED_START_OFFSET


class Persister(Protocol):
    """What a group coordinator needs of the persister of its broker (see `share.persister`)."""

    def initialize_state(
        self,
        request: initializing.InitializeShareGroupStateRequest,
        then: Callable[[initializing.InitializeShareGroupStateResponse], None],
        /,
    ) -> None: ...

    def delete_state(
        self,
        request: deleting.DeleteShareGroupStateRequest,
        then: Callable[[deleting.DeleteShareGroupStateResponse], None],
        /,
    ) -> None: ...

    def read_summary(
        self,
        request: summing.ReadShareGroupStateSummaryRequest,
        then: Callable[[summing.ReadShareGroupStateSummaryResponse], None],
        /,
    ) -> None: ...


def initialize_request(
    group_id: str, start_offsets: Mapping[bytes, Mapping[int, int]], epoch: int
) -> initializing.InitializeShareGroupStateRequest:
    """`start_offsets` by topic id and partition; `epoch` is the state epoch."""
    return initializing.InitializeShareGroupStateRequest(
        group_id=group_id,
        topics=[
            initializing.InitializeStateData(
                topic_id=topic_id,
                partitions=[
                    initializing.PartitionData(
                        partition=partition,
                        state_epoch=epoch,
                        start_offset=start_offsets[topic_id][partition],
                    )
                    for partition in partition_order(start_offsets[topic_id])
                ],
            )
            for topic_id in topic_order(start_offsets)
        ],
    )


def delete_request(
    group_id: str, which: Mapping[bytes, frozenset[int]]
) -> deleting.DeleteShareGroupStateRequest:
    return deleting.DeleteShareGroupStateRequest(
        group_id=group_id,
        topics=[
            deleting.DeleteStateData(
                topic_id=topic_id,
                partitions=[
                    deleting.PartitionData(partition=each)
                    for each in partition_order(which[topic_id])
                ],
            )
            for topic_id in topic_order(which)
        ],
    )


def summary_request(
    group_id: str, which: Mapping[bytes, tuple[int, ...]]
) -> summing.ReadShareGroupStateSummaryRequest:
    return summing.ReadShareGroupStateSummaryRequest(
        group_id=group_id,
        topics=[
            summing.ReadStateSummaryData(
                topic_id=topic_id,
                partitions=[
                    summing.PartitionData(partition=each, leader_epoch=0) for each in partitions
                ],
            )
            for topic_id, partitions in which.items()
        ],
    )


def errors_of(response: StateResponse) -> dict[bytes, dict[int, tuple[ErrorCode, str | None]]]:
    """The results by topic id and partition: error and message."""
    found: dict[bytes, dict[int, tuple[ErrorCode, str | None]]] = {}
    for topic in response.results:
        results = found.setdefault(topic.topic_id, {})
        for each in topic.partitions:
            error = ERROR_CODES[each.error_code]
            results[each.partition] = error, each.error_message
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
