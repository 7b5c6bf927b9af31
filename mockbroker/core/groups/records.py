"""Records of `__consumer_offsets` for classic groups and offsets.

Kafka 4.3 writes offsets as value v4 (v1 if they have an expire timestamp) and groups as value v3.
All versions are read. A null value is a tombstone. Source: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from mockbroker.core.groups.events import GroupImage, MemberImage
from mockbroker.core.groups.offsets import NO_TIMESTAMP, OffsetAndMetadata
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from mockbroker_protocol.records import Record

KeyValue: TypeAlias = "tuple[bytes, bytes | None]"

VALUE_VERSION_WITH_EXPIRY = 1


class OffsetRecord(msgspec.Struct, frozen=True):
    """A committed offset. None: the tombstone."""

    group_id: str
    topic: str
    partition: int
    value: OffsetAndMetadata | None


class GroupMetadataRecord(msgspec.Struct, frozen=True):
    """The metadata of a classic group. None: the tombstone."""

    group_id: str
    image: GroupImage | None


# ------------------------------------------------------------------------------------------ writing


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetAndMetadata) -> KeyValue:
    """The record of one committed offset."""
    encoded = CONSUMER_OFFSETS.encode_value(
        OffsetCommitValue(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp_ms,
            expire_timestamp=value.expire_timestamp_ms,
            topic_id=value.topic_id,
        ),
        None if value.expire_timestamp_ms == NO_TIMESTAMP else VALUE_VERSION_WITH_EXPIRY,
    )
    return _offset_key(group_id, topic, partition), encoded


def offset_tombstone(group_id: str, topic: str, partition: int) -> KeyValue:
    """The tombstone of a committed offset."""
    return _offset_key(group_id, topic, partition), None


def group_metadata(group_id: str, image: GroupImage) -> KeyValue:
    """The record of a group after a rebalance."""
    value = GroupMetadataValue(
        protocol_type=image.protocol_type,
        generation=image.generation,
        protocol=image.protocol,
        leader=image.leader,
        current_state_timestamp=image.state_timestamp_ms,
        members=[
            MemberMetadata(
                member_id=m.member_id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                rebalance_timeout=m.rebalance_timeout_ms,
                session_timeout=m.session_timeout_ms,
                subscription=m.subscription,
                assignment=m.assignment,
            )
            for m in image.members
        ],
    )
    return _group_key(group_id), CONSUMER_OFFSETS.encode_value(value)


def new_group(group_id: str, now_ms: int) -> KeyValue:
    """The record of a new group: Empty, without a protocol type."""
    return group_metadata(group_id, GroupImage("", 0, None, None, now_ms))


def group_tombstone(group_id: str) -> KeyValue:
    """The tombstone of a group."""
    return _group_key(group_id), None


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return CONSUMER_OFFSETS.encode_key(key)


def _group_key(group_id: str) -> bytes:
    return CONSUMER_OFFSETS.encode_key(GroupMetadataKey(group=group_id))


# ------------------------------------------------------------------------------------------ reading


def parse(record: Record) -> OffsetRecord | GroupMetadataRecord | None:
    """The decoded record, or None if it is neither an offset nor a classic group.

    Raises DecodeError if key or value do not have the format of their version.
    """
    if record.key is None:
        return None
    key = CONSUMER_OFFSETS.decode_key(record.key)
    if isinstance(key, OffsetCommitKey):
        value = CONSUMER_OFFSETS.decode_value(key, record.value)
        offset = None if value is None else _offset(value, record.offset)
        return OffsetRecord(key.group, key.topic, key.partition, offset)
    if isinstance(key, GroupMetadataKey):
        value = CONSUMER_OFFSETS.decode_value(key, record.value)
        return GroupMetadataRecord(key.group, None if value is None else _group(value))
    return None


def _offset(value: OffsetCommitValue, record_offset: int) -> OffsetAndMetadata:
    """Fields that the version does not have get their defaults, which mean none."""
    return OffsetAndMetadata(
        value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
        topic_id=value.topic_id,
        record_offset=record_offset,
    )


def _group(value: GroupMetadataValue) -> GroupImage:
    return GroupImage(
        value.protocol_type,
        value.generation,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        tuple(
            MemberImage(
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.client_host,
                # v0 has no rebalance timeout; Kafka uses the session timeout instead.
                m.session_timeout if m.rebalance_timeout < 0 else m.rebalance_timeout,
                m.session_timeout,
                bytes(m.subscription),
                bytes(m.assignment),
            )
            for m in value.members
        ),
    )
