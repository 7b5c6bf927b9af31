"""Records of `__consumer_offsets` become changes by the type of their key, and the other way."""

from __future__ import annotations

from mockbroker.core.groups.modern.events import GroupChange, StoredChange
from mockbroker.core.groups.modern.records import RecordType, RecordTypes, value_records
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)
from mockbroker_protocol.records import Record

KEY = CONSUMER_OFFSETS.encode_key(ShareGroupMetadataKey("g"))
VALUE = CONSUMER_OFFSETS.encode_value(ShareGroupMetadataValue(epoch=7, metadata_hash=0))


class PatternChange(StoredChange, frozen=True):
    """A change of a part of a group, which its record names."""

    value_field = "topics"
    pattern: str
    topics: tuple[str, ...] | None


TYPES = RecordTypes(
    RecordType(
        GroupChange,
        ShareGroupMetadataKey,
        lambda change: ShareGroupMetadataValue(epoch=change.epoch, metadata_hash=0),
        lambda value: GroupChange(value.epoch),
    ),
    value_records(
        PatternChange,
        ConsumerGroupRegularExpressionKey,
        lambda topics: ConsumerGroupRegularExpressionValue(list(topics), 1, 2),
        lambda value: tuple(value.topics),
        "pattern",
        "regular_expression",
    ),
)


def test_a_record_has_the_change_of_its_key_and_value() -> None:
    assert TYPES.parse(Record(0, key=KEY, value=VALUE)) == ("g", GroupChange(7))
    assert TYPES.record_of("g", GroupChange(7)) == (KEY, VALUE)


def test_a_change_without_a_value_is_a_tombstone() -> None:
    assert TYPES.parse(Record(0, key=KEY, value=None)) == ("g", GroupChange(None))
    assert TYPES.record_of("g", GroupChange(None)) == (KEY, None)


def test_the_key_names_the_part_of_the_group() -> None:
    for change in (PatternChange("a.*", ("ab", "ac")), PatternChange("a.*", None)):
        key, value = TYPES.record_of("g", change)
        assert TYPES.parse(Record(0, key=key, value=value)) == ("g", change)
        assert CONSUMER_OFFSETS.decode_key(key) == ConsumerGroupRegularExpressionKey("g", "a.*")


def test_a_record_without_a_key_or_of_another_type_is_no_change() -> None:
    assert TYPES.parse(Record(0, key=None, value=VALUE)) is None
    assert RecordTypes().parse(Record(0, key=KEY, value=VALUE)) is None
