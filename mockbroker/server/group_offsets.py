"""Groups and committed offsets that the cluster's operator sets, resets and deletes.

The group's coordinator gets the requests of an admin client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from mockbroker.core.errors import ApiError
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.views.groups import group_views
from mockbroker.core.views.topics import partition_of, topic_of
from mockbroker.server.own_requests import send
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.errors import ERROR_CODES
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

TopicPartition = tuple[str, int]
# The last versions of all served releases; they name topics.
COMMIT_VERSION = 8
DELETE_GROUPS_VERSION = 2
OFFSET_DELETE_VERSION = 0


async def commit_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]
) -> None:
    """Commit (offset, metadata) of each partition for a group without members.

    Raises ApiError: UNKNOWN_MEMBER_ID if it has members.
    """
    known = next((each for each in group_views(cluster) if each.group == group), None)
    if known is not None and known.members:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"group {group} has {len(known.members)} members; its offsets can be set once it has "
            "none",
        )
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, index), (offset, metadata) in offsets.items():
        partition_of(cluster, topic, index)
        entry = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, partitions=[]))
        entry.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
        )
    cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, topics=list(topics.values())
    )
    response: OffsetCommitResponse = await send(
        cluster, coordinator(cluster, group), ApiKey.OFFSET_COMMIT, COMMIT_VERSION, request
    )
    for each in response.topics:
        for answer in each.partitions:
            _check(answer.error_code, f"group {group}, {each.name}-{answer.partition_index}")


async def remove_offsets(cluster: Cluster, group: str, keys: Iterable[TopicPartition]) -> None:
    """Delete committed offsets of topics that no member subscribes to. Raises ApiError."""
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for topic, index in sorted(keys):
        entry = topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic, partitions=[]))
        entry.partitions.append(OffsetDeleteRequestPartition(partition_index=index))
    request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))
    response: OffsetDeleteResponse = await send(
        cluster, coordinator(cluster, group), ApiKey.OFFSET_DELETE, OFFSET_DELETE_VERSION, request
    )
    _check(response.error_code, f"group {group}")
    for each in response.topics:
        for answer in each.partitions:
            _check(answer.error_code, f"group {group}, {each.name}-{answer.partition_index}")


async def delete_group(cluster: Cluster, group: str) -> None:
    """Delete a group without members, with its offsets. Raises ApiError."""
    request = DeleteGroupsRequest(groups_names=[group])
    response: DeleteGroupsResponse = await send(
        cluster, coordinator(cluster, group), ApiKey.DELETE_GROUPS, DELETE_GROUPS_VERSION, request
    )
    _check(response.results[0].error_code, f"group {group}")


def coordinator(cluster: Cluster, group: str) -> int:
    """The node id of a group's coordinator. Raises ApiError without one."""
    topic = cluster.topics.get(GROUP_METADATA_TOPIC)
    if topic is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
    index = cluster.find_coordinator_partition(group, GROUP_METADATA_TOPIC)
    leader = topic.partitions[index].leader_id
    if leader < 0:
        raise ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"no broker leads {GROUP_METADATA_TOPIC}-{index}"
        )
    return leader


def offsets_of(
    cluster: Cluster,
    topic: str,
    partitions: Iterable[int] | None,
    target: Literal["earliest", "latest"] | int,
    *,
    by_time: bool = False,
) -> dict[TopicPartition, int]:
    """The offset of `target` in each partition: an offset is clamped to the log; a time (ms) is the
    first record at or after it, or the end. Raises ApiError.
    """
    wanted = range(len(topic_of(cluster, topic).partitions)) if partitions is None else partitions
    found: dict[TopicPartition, int] = {}
    for index in wanted:
        partition = partition_of(cluster, topic, index)
        start, end = partition.log_start_offset, partition.high_watermark
        if target == "earliest":
            offset = start
        elif target == "latest":
            offset = end
        elif by_time:
            first = partition.log.find_timestamp(target)
            offset = end if first is None else first.offset
        else:
            offset = target
        found[topic, index] = min(max(offset, start), end)
    return found


def _check(code: int, what: str) -> None:
    if code:
        error = ERROR_CODES[code]
        raise ApiError(error, f"{what}: {error.message}")
