"""AlterShareGroupOffsets and DeleteShareGroupOffsets: the start offsets of share partitions.

Both need an Empty group. Altering initializes the share partitions anew; a group that does not
exist is created. Deleting removes their share state: a member that subscribes later initializes it
again. The group notes what begins, and then what has happened, as records.

Source: GroupCoordinatorService, GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.assignors.base import topic_order
from mockbroker.core.groups.share.partitions import NO_PARTITIONS
from mockbroker.core.groups.share.state_requests import (
    delete_request,
    errors_of,
    first_error,
    initialize_request,
    partitions_of,
)
from mockbroker.core.groups.share.states import PartitionEvent
from mockbroker.core.ids import ZERO_UUID
from mockbroker.core.share.operations import DELETE, INITIALIZE
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.groups.share.group import ShareGroup
    from mockbroker_protocol.messages.delete_share_group_state import DeleteShareGroupStateResponse
    from mockbroker_protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateResponse,
    )

NONE = ErrorCode.NONE
NO_OFFSETS = "There is no offset information to delete."

# The errors of partitions by topic id; partitions without an error are left out.
PartitionErrors = Mapping[bytes, Mapping[int, tuple[ErrorCode, str | None]]]


class TopicResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one topic of a DeleteShareGroupOffsets."""

    name: str
    topic_id: bytes = ZERO_UUID
    error: ErrorCode = NONE
    message: str | None = None


def alter_offsets(
    shard: GroupShard,
    group_id: str,
    start_offsets: Mapping[bytes, Mapping[int, int]],
    then: Callable[[ApiError | None, PartitionErrors], None],
) -> None:
    """Set start offsets, by topic id and partition; all partitions exist.

    `then` gets an error of the whole request, or those of the partitions.
    """
    try:
        group = shard.shares.get(group_id) or shard.shares.new_group(group_id, [])
        _check_empty(group)
    except ApiError as error:
        then(error, {})
        return
    error_code = NONE
    if start_offsets:
        which = {topic_id: frozenset(offsets) for topic_id, offsets in start_offsets.items()}
        error_code = shard.shares.write_event(group, PartitionEvent.INITIALIZE, which)
    shard.when_replicated(partial(_initialize, shard, group, start_offsets, then), error_code)


def _initialize(
    shard: GroupShard,
    group: ShareGroup,
    start_offsets: Mapping[bytes, Mapping[int, int]],
    then: Callable[[ApiError | None, PartitionErrors], None],
    error: ErrorCode,
) -> None:
    wanted = {topic_id: offsets for topic_id, offsets in start_offsets.items() if offsets}
    if error is not NONE:
        then(ApiError(error, error.message), {})
    elif not wanted:
        then(None, {})
    else:
        request = initialize_request(group.group_id, wanted, group.epoch)
        respond = partial(_on_initialized, shard, group.group_id, then)
        shard.coordinator.share_persister.send(INITIALIZE, request, respond)


def _on_initialized(
    shard: GroupShard,
    group_id: str,
    then: Callable[[ApiError | None, PartitionErrors], None],
    response: InitializeShareGroupStateResponse,
) -> None:
    """After an error the partitions remain initializing, as in Kafka: the next member retries."""
    if first_error(response) is NONE:
        shard.shares.note_initialized(group_id, partitions_of(response))
    failed = {
        topic_id: {index: each for index, each in results.items() if each[0] is not NONE}
        for topic_id, results in errors_of(response).items()
    }
    then(None, failed)


def delete_offsets(
    shard: GroupShard,
    group_id: str,
    names: Iterable[str],
    then: Callable[[ApiError | None, list[TopicResult]], None],
) -> None:
    """Delete the share state of topics.

    `then` gets an error of the whole request, or the results of the topics.
    """
    try:
        group = shard.shares.get(group_id)
        if group is None:
            raise shard.shares.not_found(group_id, f"Group {group_id} not found.")
        _check_empty(group)
    except ApiError as error:
        then(error, [])
        return
    failed: list[TopicResult] = []
    which: dict[bytes, frozenset[int]] = {}
    error_code = NONE
    if group.noted is not None:
        which = _deletable(group, names, failed)
        error_code = shard.shares.write_event(group, PartitionEvent.DELETE_OFFSETS, which)

    def delete(error: ErrorCode) -> None:
        if error is not NONE:
            then(ApiError(error, error.message), [])
        elif not which:
            then(None, failed)
        else:
            request = delete_request(group_id, which)
            respond = partial(_on_deleted, shard, group, failed, then)
            shard.coordinator.share_persister.send(DELETE, request, respond)

    shard.when_replicated(delete, error_code)


def _check_empty(group: ShareGroup) -> None:
    error = group.check_delete()
    if error is not NONE:
        raise ApiError(error, error.message)


def _deletable(
    group: ShareGroup, names: Iterable[str], failed: list[TopicResult]
) -> dict[bytes, frozenset[int]]:
    """The partitions with state of the named topics; topics without any are added to `failed`."""
    share = group.noted or NO_PARTITIONS
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    which: dict[bytes, frozenset[int]] = {}
    for name in names:
        topic = group.topics.by_name(name)
        if topic is None:
            failed.append(TopicResult(name=name, error=unknown, message=unknown.message))
        elif topic.topic_id in share.initialized:
            which[topic.topic_id] = share.initialized[topic.topic_id].partitions
        elif topic.topic_id in share.deleting:
            which[topic.topic_id] = frozenset(range(topic.partitions))
        else:
            failed.append(TopicResult(name=name, error=unknown, message=NO_OFFSETS))
    return which


def _on_deleted(
    shard: GroupShard,
    group: ShareGroup,
    failed: list[TopicResult],
    then: Callable[[ApiError | None, list[TopicResult]], None],
    response: DeleteShareGroupStateResponse,
) -> None:
    """Note the topics whose state is deleted. The others remain deleting, for another request."""
    deleted: list[TopicResult] = []
    for topic_id, results in errors_of(response).items():
        errors = [error for error, _ in results.values() if error is not NONE]
        topic = group.topics.by_id(topic_id)
        name = "" if topic is None else topic.name
        if errors:
            failed.append(
                TopicResult(
                    name=name, topic_id=topic_id, error=errors[0], message=errors[0].message
                )
            )
        else:
            deleted.append(TopicResult(name=name, topic_id=topic_id))
    if not deleted:
        then(None, failed)
        return
    error_code = ErrorCode.NOT_COORDINATOR
    if not shard.unloaded:
        which = {each.topic_id: frozenset[int]() for each in deleted}
        error_code = shard.shares.write_event(group, PartitionEvent.OFFSETS_DELETED, which)
    order = {
        topic_id: place
        for place, topic_id in enumerate(topic_order(each.topic_id for each in deleted))
    }
    deleted.sort(key=lambda each: order[each.topic_id])

    def respond(error: ErrorCode) -> None:
        if error is not NONE:
            then(ApiError(error, error.message), [])
        else:
            then(None, [*deleted, *failed])

    shard.when_replicated(respond, error_code)
