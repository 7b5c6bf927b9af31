"""Records of consumer groups in `__consumer_offsets`.

Key 4 has only tombstones. Source: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.groups.consumer.events import (
    RegexChange,
    ResolvedRegex,
    SubscriptionMetadataTombstone,
)
from mockbroker.core.groups.consumer.members import ClassicMember, ConsumerMember, Owned, Target
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.modern.events import CurrentAssignment
from mockbroker.core.groups.modern.records import (
    Conversion,
    RecordType,
    modern_records,
    value_records,
)
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.messages import consumer_offsets as stored
from mockbroker_protocol.messages.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions as TopicPartitions,
)


def _write_member(member: ConsumerMember) -> stored.ConsumerGroupMemberMetadataValue:
    return stored.ConsumerGroupMemberMetadataValue(
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


def _classic_metadata(classic: ClassicMember | None) -> stored.ClassicMemberMetadata | None:
    if classic is None:
        return None
    return stored.ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            stored.ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in classic.protocols
        ],
    )


def _read_member(value: stored.ConsumerGroupMemberMetadataValue, member_id: str) -> ConsumerMember:
    classic = value.classic_member_metadata
    return ConsumerMember(
        member_id=member_id,
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


def _write_target(target: Target) -> stored.ConsumerGroupTargetAssignmentMemberValue:
    return stored.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            stored.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in target.items()
        ]
    )


def _read_target(value: stored.ConsumerGroupTargetAssignmentMemberValue) -> Target:
    return {bytes(line.topic_id): frozenset(line.partitions) for line in value.topic_partitions}


def _write_current(
    current: CurrentAssignment[Owned],
) -> stored.ConsumerGroupCurrentMemberAssignmentValue:
    return stored.ConsumerGroupCurrentMemberAssignmentValue(
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


def _read_current(
    value: stored.ConsumerGroupCurrentMemberAssignmentValue,
) -> CurrentAssignment[Owned]:
    known = value.state in MemberState._value2member_map_
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState(value.state) if known else MemberState.UNKNOWN,
        _owned(value.assigned_partitions, value.member_epoch),
        _owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _owned(lines: list[TopicPartitions], member_epoch: int) -> Mapping[bytes, Mapping[int, int]]:
    """An owned map; the member epoch replaces assignment epochs, which Kafka has since 4.2.

    Raises DecodeError unless each partition has an epoch.
    """
    try:
        return {
            bytes(line.topic_id): dict(zip(line.partitions, line.assignment_epochs, strict=True))
            if line.assignment_epochs
            else dict.fromkeys(line.partitions, max(member_epoch, 0))
            for line in lines
        }
    except ValueError as error:
        raise DecodeError("assignment_epochs", 0, str(error)) from None


def _write_regex(resolved: ResolvedRegex) -> stored.ConsumerGroupRegularExpressionValue:
    return stored.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )


def _read_regex(value: stored.ConsumerGroupRegularExpressionValue) -> ResolvedRegex:
    return ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)


def _no_value(_: object) -> SubscriptionMetadataTombstone:
    """No release since 4.1 writes a value, and the group does not need it."""
    return SubscriptionMetadataTombstone()


RECORD_TYPES = modern_records(
    "ConsumerGroup",
    Conversion(_write_member, _read_member),
    Conversion(_write_target, _read_target),
    Conversion(_write_current, _read_current),
    RecordType(
        SubscriptionMetadataTombstone,
        stored.ConsumerGroupPartitionMetadataKey,
        _no_value,
        _no_value,
    ),
    value_records(
        RegexChange,
        stored.ConsumerGroupRegularExpressionKey,
        _write_regex,
        _read_regex,
        "regex",
        "regular_expression",
    ),
)
