"""Records of consumer groups in `__consumer_offsets`, one for each change.

Kafka 4.3 writes all of them as value v0, and with key 4 only tombstones.
Source: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mockbroker.core.groups.consumer.events import (
    Change,
    CurrentAssignment,
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    RegexChange,
    ResolvedRegex,
    SubscriptionMetadataTombstone,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.consumer.members import ClassicMember, ConsumerMember, Owned
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.modern.records import parse_change
from mockbroker.core.groups.records import KeyValue
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
)
from mockbroker_protocol.messages.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions as TopicPartitions,
)
from mockbroker_protocol.records import Record


class ConsumerRecord(msgspec.Struct, frozen=True):
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
    key = ConsumerGroupMetadataKey(group_id=group_id)
    if change.epoch is None:
        return key, None
    return key, ConsumerGroupMetadataValue(epoch=change.epoch, metadata_hash=change.metadata_hash)


def _subscription_metadata(
    group_id: str, _: SubscriptionMetadataTombstone
) -> tuple[object, object]:
    return ConsumerGroupPartitionMetadataKey(group_id=group_id), None


def _member(group_id: str, change: MemberChange) -> tuple[object, object]:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=change.member_id)
    member = change.member
    if member is None:
        return key, None
    return key, ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=_classic_metadata(member.classic),
    )


def _classic_metadata(classic: ClassicMember | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
        ],
    )


def _target_epoch(group_id: str, change: TargetEpochChange) -> tuple[object, object]:
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    if change.epoch is None:
        return key, None
    return key, ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=change.epoch, assignment_timestamp=change.timestamp_ms
    )


def _target(group_id: str, change: TargetAssignmentChange) -> tuple[object, object]:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=change.member_id)
    if change.target is None:
        return key, None
    return key, ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in change.target.items()
        ]
    )


def _current(group_id: str, change: CurrentAssignmentChange) -> tuple[object, object]:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=change.member_id)
    current = change.current
    if current is None:
        return key, None
    return key, ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=_owned_lines(current.assigned),
        partitions_pending_revocation=_owned_lines(current.revoking),
    )


def _owned_lines(owned: Owned) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=list(partitions),
            assignment_epochs=list(partitions.values()),
        )
        for topic_id, partitions in owned.items()
    ]


def _regex(group_id: str, change: RegexChange) -> tuple[object, object]:
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=change.regex)
    resolved = change.resolved
    if resolved is None:
        return key, None
    return key, ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )


_WRITERS: dict[type, Callable[[str, Any], tuple[object, object]]] = {
    GroupChange: _group,
    SubscriptionMetadataTombstone: _subscription_metadata,
    MemberChange: _member,
    TargetEpochChange: _target_epoch,
    TargetAssignmentChange: _target,
    CurrentAssignmentChange: _current,
    RegexChange: _regex,
}


# ------------------------------------------------------------------------------------------ reading


def parse(record: Record) -> ConsumerRecord | None:
    """The decoded record, or None if it is not a record of consumer groups.

    Raises DecodeError if key or value do not have the format of their version.
    """
    parsed = parse_change(record, _READERS)
    return None if parsed is None else ConsumerRecord(*parsed)


def _read_group(
    _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> GroupChange:
    return GroupChange(None) if value is None else GroupChange(value.epoch, value.metadata_hash)


def _read_subscription_metadata(
    _: ConsumerGroupPartitionMetadataKey, __: ConsumerGroupPartitionMetadataValue | None
) -> SubscriptionMetadataTombstone:
    return SubscriptionMetadataTombstone()


def _read_member(
    key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> MemberChange:
    if value is None:
        return MemberChange(key.member_id, None)
    classic = value.classic_member_metadata
    member = ConsumerMember(
        member_id=key.member_id,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMember(
            classic.session_timeout_ms,
            tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols),
        ),
    )
    return MemberChange(key.member_id, member)


def _read_target_epoch(
    _: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> TargetEpochChange:
    if value is None:
        return TargetEpochChange(None)
    return TargetEpochChange(value.assignment_epoch, value.assignment_timestamp)


def _read_target(
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> TargetAssignmentChange:
    if value is None:
        return TargetAssignmentChange(key.member_id, None)
    target = {bytes(line.topic_id): frozenset(line.partitions) for line in value.topic_partitions}
    return TargetAssignmentChange(key.member_id, target)


def _read_current(
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> CurrentAssignmentChange:
    if value is None:
        return CurrentAssignmentChange(key.member_id, None)
    known = value.state in MemberState._value2member_map_
    current = CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState(value.state) if known else MemberState.UNKNOWN,
        _owned(value.assigned_partitions, value.member_epoch),
        _owned(value.partitions_pending_revocation, value.member_epoch),
    )
    return CurrentAssignmentChange(key.member_id, current)


def _owned(lines: list[TopicPartitions], member_epoch: int) -> Mapping[bytes, Mapping[int, int]]:
    """An owned map; the member epoch replaces assignment epochs, which Kafka has since 4.2."""
    return {
        bytes(line.topic_id): dict(zip(line.partitions, line.assignment_epochs, strict=True))
        if line.assignment_epochs
        else dict.fromkeys(line.partitions, max(member_epoch, 0))
        for line in lines
    }


def _read_regex(
    key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> RegexChange:
    if value is None:
        return RegexChange(key.regular_expression, None)
    resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    return RegexChange(key.regular_expression, resolved)


_READERS: dict[type, Callable[[Any, Any], Change]] = {
    ConsumerGroupMetadataKey: _read_group,
    ConsumerGroupPartitionMetadataKey: _read_subscription_metadata,
    ConsumerGroupMemberMetadataKey: _read_member,
    ConsumerGroupTargetAssignmentMetadataKey: _read_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _read_target,
    ConsumerGroupCurrentMemberAssignmentKey: _read_current,
    ConsumerGroupRegularExpressionKey: _read_regex,
}
