"""Records of share groups in `__consumer_offsets`.

Source: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from mockbroker.core.groups.assignors.base import partition_order, topic_order
from mockbroker.core.groups.modern.events import CurrentAssignment
from mockbroker.core.groups.modern.records import (
    Conversion,
    modern_records,
    value_records,
)
from mockbroker.core.groups.share.events import PartitionsChange
from mockbroker.core.groups.share.members import ShareMember, Target
from mockbroker.core.groups.share.partitions import SharePartitions, TopicPartitions
from mockbroker_protocol.messages import consumer_offsets as stored


def _write_member(member: ShareMember) -> stored.ShareGroupMemberMetadataValue:
    return stored.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )


def _read_member(value: stored.ShareGroupMemberMetadataValue, member_id: str) -> ShareMember:
    return ShareMember(
        member_id=member_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
    )


def _write_target(target: Target) -> stored.ShareGroupTargetAssignmentMemberValue:
    return stored.ShareGroupTargetAssignmentMemberValue(topic_partitions=_lines(target))


def _read_target(value: stored.ShareGroupTargetAssignmentMemberValue) -> Target:
    return _read_lines(value.topic_partitions)


def _write_current(
    current: CurrentAssignment[Target],
) -> stored.ShareGroupCurrentMemberAssignmentValue:
    return stored.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=[
            stored.ShareGroupCurrentMemberAssignmentValueTopicPartitions(
                line.topic_id, line.partitions
            )
            for line in _lines(current.assigned)
        ],
    )


def _read_current(
    value: stored.ShareGroupCurrentMemberAssignmentValue,
) -> CurrentAssignment[Target]:
    assigned = _read_lines(value.assigned_partitions)
    epoch, previous_epoch = value.member_epoch, value.previous_member_epoch
    return CurrentAssignment(epoch, previous_epoch, value.state, assigned, {})


def _lines(assigned: Target) -> list[stored.TopicPartition]:
    return [
        stored.TopicPartition(topic_id=topic_id, partitions=partition_order(assigned[topic_id]))
        for topic_id in topic_order(assigned)
    ]


class _Line(Protocol):
    """The partitions of one topic, in a target or a current assignment."""

    topic_id: bytes
    partitions: list[int]


def _read_lines(lines: Iterable[_Line]) -> dict[bytes, frozenset[int]]:
    return {bytes(line.topic_id): frozenset(line.partitions) for line in lines}


def _write_partitions(share: SharePartitions) -> stored.ShareGroupStatePartitionMetadataValue:
    return stored.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(share.initializing),
        initialized_topics=_infos(share.initialized),
        deleting_topics=[
            stored.ShareGroupStatePartitionMetadataValueTopicInfo(
                topic_id, share.deleting[topic_id]
            )
            for topic_id in topic_order(share.deleting)
        ],
    )


def _infos(topics: Mapping[bytes, TopicPartitions]) -> list[stored.TopicPartitionsInfo]:
    return [
        stored.TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=topics[topic_id].name,
            partitions=partition_order(topics[topic_id].partitions),
        )
        for topic_id in topic_order(topics)
    ]


def _read_partitions(value: stored.ShareGroupStatePartitionMetadataValue) -> SharePartitions:
    return SharePartitions(
        _read_infos(value.initializing_topics),
        _read_infos(value.initialized_topics),
        {bytes(line.topic_id): line.topic_name for line in value.deleting_topics},
    )


def _read_infos(lines: list[stored.TopicPartitionsInfo]) -> dict[bytes, TopicPartitions]:
    return {
        bytes(line.topic_id): TopicPartitions(line.topic_name, frozenset(line.partitions))
        for line in lines
    }


RECORD_TYPES = modern_records(
    "ShareGroup",
    Conversion(_write_member, _read_member),
    Conversion(_write_target, _read_target),
    Conversion(_write_current, _read_current),
    value_records(
        PartitionsChange,
        stored.ShareGroupStatePartitionMetadataKey,
        _write_partitions,
        _read_partitions,
    ),
)
