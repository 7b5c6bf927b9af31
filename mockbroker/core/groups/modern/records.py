"""Records of `__consumer_offsets`, one for each change of a group.

Kafka 4.3 writes all of them as value v0. A tombstone stands for each change without a value.
Source: GroupCoordinatorRecordHelpers, GroupCoordinatorRecordSerde.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mockbroker.core.groups.modern.events import (
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.records import KeyValue
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages import consumer_offsets
from mockbroker_protocol.records import Record


class RecordType(NamedTuple):
    """The records of one type of change.

    `identity` is the field of key and change that names a part of the group, such as `member_id`;
    `key_identity` is its name in the key if that differs. `write` makes the value of a change,
    `read` the change of a value and its identity.
    """

    change: Callable[..., StoredChange]
    key: type
    write: Callable[[Any], object]
    read: Callable[..., StoredChange]
    identity: str = ""
    key_identity: str = ""


class ModernGroupRecord(NamedTuple):
    """A decoded record."""

    group_id: str
    change: StoredChange


class RecordTypes:
    """The types of records of groups with one protocol."""

    __slots__ = ("_by_change", "_by_key")

    def __init__(self, *types: RecordType) -> None:
        self._by_change: dict[object, RecordType] = {each.change: each for each in types}
        self._by_key = {each.key: each for each in types}

    def record_of(self, group_id: str, change: StoredChange) -> KeyValue:
        """The record of one change; a tombstone if the change removes something."""
        kind = self._by_change[type(change)]
        identity = (getattr(change, kind.identity),) if kind.identity else ()
        key = CONSUMER_OFFSETS.encode_key(kind.key(group_id, *identity))
        if change.is_tombstone:
            return key, None
        return key, CONSUMER_OFFSETS.encode_value(kind.write(change))

    def parse(self, record: Record) -> ModernGroupRecord | None:
        """The decoded record, or None if it is not of these types.

        Raises DecodeError if key or value do not have the format of their version.
        """
        if record.key is None:
            return None
        key = CONSUMER_OFFSETS.decode_key(record.key)
        kind = self._by_key.get(type(key))
        if kind is None:
            return None
        value = CONSUMER_OFFSETS.decode_value(key, record.value)
        identity = (getattr(key, kind.key_identity or kind.identity),) if kind.identity else ()
        change = kind.change(*identity, None) if value is None else kind.read(value, *identity)
        return ModernGroupRecord(key.group_id, change)


def value_records(
    change: Callable[..., StoredChange],
    key: type,
    write: Callable[[Any], object],
    read: Callable[[Any], object],
    identity: str = "",
    key_identity: str = "",
) -> RecordType:
    """Records of changes with an identity and one value. `write` and `read` convert that value."""
    return RecordType(
        change,
        key,
        lambda each: write(getattr(each, each.value_field)),
        lambda stored, *named: change(*named, read(stored)),
        identity,
        key_identity,
    )


class Conversion(NamedTuple):
    """`write` makes the value of a record, `read` reverses it."""

    write: Callable[[Any], object]
    read: Callable[..., object]


def modern_records(
    prefix: str, member: Conversion, target: Conversion, current: Conversion, *others: RecordType
) -> RecordTypes:
    """The records of the protocol whose keys and values begin with `prefix`.

    `others` replace those with the same change. The conversion of a member reads a member id too.
    """

    def named(name: str) -> Any:
        return getattr(consumer_offsets, prefix + name)

    group_value, epoch_value = named("MetadataValue"), named("TargetAssignmentMetadataValue")
    return RecordTypes(
        RecordType(
            GroupChange,
            named("MetadataKey"),
            lambda change: group_value(epoch=change.epoch, metadata_hash=change.metadata_hash),
            lambda value: GroupChange(value.epoch, value.metadata_hash),
        ),
        RecordType(
            TargetEpochChange,
            named("TargetAssignmentMetadataKey"),
            lambda change: epoch_value(
                assignment_epoch=change.epoch, assignment_timestamp=change.timestamp_ms
            ),
            lambda value: TargetEpochChange(value.assignment_epoch, value.assignment_timestamp),
        ),
        RecordType(
            MemberChange,
            named("MemberMetadataKey"),
            lambda change: member.write(change.member),
            lambda value, member_id: MemberChange(member_id, member.read(value, member_id)),
            "member_id",
        ),
        value_records(
            TargetAssignmentChange, named("TargetAssignmentMemberKey"), *target, "member_id"
        ),
        value_records(
            CurrentAssignmentChange, named("CurrentMemberAssignmentKey"), *current, "member_id"
        ),
        *others,
    )
