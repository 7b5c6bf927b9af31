"""Records of `__consumer_offsets` become changes by the type of their key."""

from __future__ import annotations

from mockbroker.core.groups.modern.records import parse_change
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)
from mockbroker_protocol.records import Record

KEY = CONSUMER_OFFSETS.encode_key(ShareGroupMetadataKey("g"))
VALUE = CONSUMER_OFFSETS.encode_value(ShareGroupMetadataValue(epoch=7, metadata_hash=0))


def test_a_reader_makes_the_change_from_key_and_value() -> None:
    record = Record(0, key=KEY, value=VALUE)
    readers = {ShareGroupMetadataKey: lambda key, value: (key.group_id, value.epoch)}
    assert parse_change(record, readers) == ("g", ("g", 7))


def test_a_tombstone_has_no_value() -> None:
    record = Record(0, key=KEY, value=None)
    assert parse_change(record, {ShareGroupMetadataKey: lambda _, value: value}) == ("g", None)


def test_a_record_without_a_key_or_a_reader_is_no_change() -> None:
    assert parse_change(Record(0, key=None, value=VALUE), {}) is None
    assert parse_change(Record(0, key=KEY, value=VALUE), {}) is None
