"""Records of share groups in `__consumer_offsets`, one for each change.

Kafka 4.3 writes all of them as value v0. Source: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from mockbroker.core.groups.assignors.base import partition_order, topic_order
from mockbroker.core.groups.modern.records import parse_change
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.share.events import (
    Change,
    CurrentAssignment,
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    PartitionsChange,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.share.members import ShareMember
from mockbroker.core.groups.share.partitions import SharePartitions, TopicPartitions
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupCurrentMemberAssignmentValueTopicPartitions,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupStatePartitionMetadataValueTopicInfo,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitionsInfo,
)
from mockbroker_protocol.records import Record


class ShareRecord(msgspec.Struct, frozen=True):
    """A decoded record."""

    group_id: str
    change: Change


# ------------------------------------------------------------------------------------------ writing


def record_of(group_id: str, change: Change) -> KeyValue:
    """The record of one change; a tombstone if the change removes something."""
    key, value = _WRITERS[type(change)](group_id, change)
    encoded = None if value is None else CONSUMER_OFFSETS.encode_value(value)
    return CONSUMER_OFFSETS.encode_key(key), encoded


def _group(group_id: str, change: GroupChange) -> tuple[object, object]:
    key = ShareGroupMetadataKey(group_id=group_id)
    if change.epoch is None:
        return key, None
    return key, ShareGroupMetadataValue(epoch=change.epoch, metadata_hash=change.metadata_hash)


def _member(group_id: str, change: MemberChange) -> tuple[object, object]:
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=change.member_id)
    member = change.member
    if member is None:
        return key, None
    return key, ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )


def _target_epoch(group_id: str, change: TargetEpochChange) -> tuple[object, object]:
    key = ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
    if change.epoch is None:
        return key, None
    return key, ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=change.epoch, assignment_timestamp=change.timestamp_ms
    )


def _target(group_id: str, change: TargetAssignmentChange) -> tuple[object, object]:
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=change.member_id)
    if change.target is None:
        return key, None
    return key, ShareGroupTargetAssignmentMemberValue(topic_partitions=_lines(change.target))


def _current(group_id: str, change: CurrentAssignmentChange) -> tuple[object, object]:
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=change.member_id)
    current = change.current
    if current is None:
        return key, None
    return key, ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=[
            ShareGroupCurrentMemberAssignmentValueTopicPartitions(line.topic_id, line.partitions)
            for line in _lines(current.assigned)
        ],
    )


def _lines(assigned: Mapping[bytes, frozenset[int]]) -> list[TopicPartition]:
    return [
        TopicPartition(topic_id=topic_id, partitions=partition_order(assigned[topic_id]))
        for topic_id in topic_order(assigned)
    ]


def _partitions(group_id: str, change: PartitionsChange) -> tuple[object, object]:
    key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
    share = change.partitions
    if share is None:
        return key, None
    return key, ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(share.initializing),
        initialized_topics=_infos(share.initialized),
        deleting_topics=[
            ShareGroupStatePartitionMetadataValueTopicInfo(topic_id, share.deleting[topic_id])
            for topic_id in topic_order(share.deleting)
        ],
    )


def _infos(topics: Mapping[bytes, TopicPartitions]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=topics[topic_id].name,
            partitions=partition_order(topics[topic_id].partitions),
        )
        for topic_id in topic_order(topics)
    ]


_WRITERS: dict[type, Callable[[str, Any], tuple[object, object]]] = {
    GroupChange: _group,
    MemberChange: _member,
    TargetEpochChange: _target_epoch,
    TargetAssignmentChange: _target,
    CurrentAssignmentChange: _current,
    PartitionsChange: _partitions,
}


# ------------------------------------------------------------------------------------------ reading


def parse(record: Record) -> ShareRecord | None:
    """The decoded record, or None if it is not a record of share groups.

    Raises DecodeError if key or value do not have the format of their version.
    """
    parsed = parse_change(record, _READERS)
    return None if parsed is None else ShareRecord(*parsed)


def _read_group(_: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None) -> GroupChange:
    return GroupChange(None) if value is None else GroupChange(value.epoch, value.metadata_hash)


def _read_member(
    key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None
) -> MemberChange:
    if value is None:
        return MemberChange(key.member_id, None)
    member = ShareMember(
        member_id=key.member_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
    )
    return MemberChange(key.member_id, member)


def _read_target_epoch(
    _: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
) -> TargetEpochChange:
    if value is None:
        return TargetEpochChange(None)
    return TargetEpochChange(value.assignment_epoch, value.assignment_timestamp)


def _read_target(
    key: ShareGroupTargetAssignmentMemberKey, value: ShareGroupTargetAssignmentMemberValue | None
) -> TargetAssignmentChange:
    target = None if value is None else _read_lines(value.topic_partitions)
    return TargetAssignmentChange(key.member_id, target)


def _read_current(
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> CurrentAssignmentChange:
    if value is None:
        return CurrentAssignmentChange(key.member_id, None)
    assigned = _read_lines(value.assigned_partitions)
    current = CurrentAssignment(
        value.member_epoch, value.previous_member_epoch, value.state, assigned
    )
    return CurrentAssignmentChange(key.member_id, current)


class _Line(Protocol):
    """The partitions of one topic, in a target or a current assignment."""

    topic_id: bytes
    partitions: list[int]


def _read_lines(lines: Iterable[_Line]) -> dict[bytes, frozenset[int]]:
    return {bytes(line.topic_id): frozenset(line.partitions) for line in lines}


def _read_partitions(
    _: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
) -> PartitionsChange:
    if value is None:
        return PartitionsChange(None)
    return PartitionsChange(
        SharePartitions(
            _read_infos(value.initializing_topics),
            _read_infos(value.initialized_topics),
            {bytes(line.topic_id): line.topic_name for line in value.deleting_topics},
        )
    )


def _read_infos(lines: list[TopicPartitionsInfo]) -> dict[bytes, TopicPartitions]:
    return {
        bytes(line.topic_id): TopicPartitions(line.topic_name, frozenset(line.partitions))
        for line in lines
    }


_READERS: dict[type, Callable[[Any, Any], Change]] = {
    ShareGroupMetadataKey: _read_group,
    ShareGroupMemberMetadataKey: _read_member,
    ShareGroupTargetAssignmentMetadataKey: _read_target_epoch,
    ShareGroupTargetAssignmentMemberKey: _read_target,
    ShareGroupCurrentMemberAssignmentKey: _read_current,
    ShareGroupStatePartitionMetadataKey: _read_partitions,
}
