"""Records of `__consumer_offsets`: what a group and its offsets look like in the log.

A key begins with an int16 that says what kind of record it is, a value with the version of its
layout; a null value is a tombstone. Kafka 4.3 writes offsets as value v4 (v1 when they have an
expiry of their own) and groups as value v3; all versions are read. Source:
GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from mockbroker.core.group_events import GroupImage, MemberImage
from mockbroker.core.ids import ZERO_UUID
from mockbroker.core.offsets import NO_LEADER_EPOCH, NO_TIMESTAMP, OffsetAndMetadata
from mockbroker_protocol.codec import Codec, named_codec
from mockbroker_protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from mockbroker_protocol.records import Record

KeyValue: TypeAlias = "tuple[bytes, bytes | None]"

_SCHEMA = "consumer_offsets"
LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2  # kinds of keys

OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3


class OffsetRecord(msgspec.Struct, frozen=True):
    """A commit, or with no value its tombstone."""

    group_id: str
    topic: str
    partition: int
    value: OffsetAndMetadata | None


class GroupRecord(msgspec.Struct, frozen=True):
    """A classic group's metadata, or with no image its tombstone."""

    group_id: str
    image: GroupImage | None


# ------------------------------------------------------------------------------------------ writing


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetAndMetadata) -> KeyValue:
    """The record of one committed offset."""
    expires = value.expire_timestamp_ms != NO_TIMESTAMP
    encoded = _encode(
        "OffsetCommitValue",
        OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else OFFSET_VALUE_VERSION,
        OffsetCommitValue(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp_ms,
            expire_timestamp=value.expire_timestamp_ms,
            topic_id=value.topic_id,
        ),
    )
    return _offset_key(group_id, topic, partition), encoded


def offset_tombstone(group_id: str, topic: str, partition: int) -> KeyValue:
    """The record that ends a committed offset."""
    return _offset_key(group_id, topic, partition), None


def group_metadata(group_id: str, image: GroupImage) -> KeyValue:
    """The record of a group as it stands after a rebalance."""
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
    return _group_key(group_id), _encode("GroupMetadataValue", GROUP_VALUE_VERSION, value)


def new_group(group_id: str, now_ms: int) -> KeyValue:
    """The record of a group that has just come into being: Empty, of no protocol type yet."""
    return group_metadata(group_id, GroupImage("", 0, None, None, now_ms))


def group_tombstone(group_id: str) -> KeyValue:
    """The record that ends a group."""
    return _group_key(group_id), None


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return _prefixed(OFFSET_COMMIT, named_codec(_SCHEMA, "OffsetCommitKey", 0), key)


def _group_key(group_id: str) -> bytes:
    codec = named_codec(_SCHEMA, "GroupMetadataKey", 0)
    return _prefixed(GROUP_METADATA, codec, GroupMetadataKey(group=group_id))


def _encode(name: str, version: int, value: OffsetCommitValue | GroupMetadataValue) -> bytes:
    return _prefixed(version, named_codec(_SCHEMA, name, version), value)


def _prefixed(prefix: int, codec: Codec, message: object) -> bytes:
    return prefix.to_bytes(2, "big") + b"".join(codec.encode(message))


# ------------------------------------------------------------------------------------------ reading


def parse(record: Record) -> OffsetRecord | GroupRecord | None:
    """What a record says, or None if it is of a kind that classic groups do not have.

    Raises DecodeError when key or value are not what their first two bytes say.
    """
    if record.key is None:
        return None
    kind = int.from_bytes(record.key[:2], "big")
    if kind in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT):
        key = _decode("OffsetCommitKey", 0, record.key)
        offset = None if record.value is None else _read_offset(record.value, record.offset)
        return OffsetRecord(key.group, key.topic, key.partition, offset)
    if kind == GROUP_METADATA:
        group_id = _decode("GroupMetadataKey", 0, record.key).group
        image = None if record.value is None else _read_group(record.value)
        return GroupRecord(group_id, image)
    return None


def _read_offset(value: bytes, record_offset: int) -> OffsetAndMetadata:
    version = int.from_bytes(value[:2], "big")
    decoded: OffsetCommitValue = _decode("OffsetCommitValue", version, value)
    return OffsetAndMetadata(
        decoded.offset,
        decoded.leader_epoch if version >= 3 else NO_LEADER_EPOCH,
        decoded.metadata,
        decoded.commit_timestamp,
        decoded.expire_timestamp if version == 1 else NO_TIMESTAMP,
        decoded.topic_id if version >= 4 else ZERO_UUID,
        record_offset,
    )


def _read_group(value: bytes) -> GroupImage:
    decoded = _decode("GroupMetadataValue", int.from_bytes(value[:2], "big"), value)
    return GroupImage(
        decoded.protocol_type,
        decoded.generation,
        decoded.protocol,
        decoded.leader,
        decoded.current_state_timestamp,
        tuple(
            MemberImage(
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.client_host,
                # v0 has no rebalance timeout: the session timeout stands in for it.
                m.session_timeout if m.rebalance_timeout < 0 else m.rebalance_timeout,
                m.session_timeout,
                bytes(m.subscription),
                bytes(m.assignment),
            )
            for m in decoded.members
        ),
    )


def _decode(name: str, version: int, buffer: bytes) -> Any:
    return named_codec(_SCHEMA, name, version).decode(buffer, 2)[0]
