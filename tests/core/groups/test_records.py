"""Records of groups and offsets: bytes as Kafka writes them, and everything it ever wrote can be
read.
"""

from __future__ import annotations

import pytest

from mockbroker.core.groups import records as group_records
from mockbroker.core.groups.events import GroupImage, MemberImage
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.groups.records import GroupMetadataRecord, OffsetRecord, parse
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
)
from mockbroker_protocol.records import Record

VALUE = OffsetAndMetadata(42, 3, "meta", 1_700_000_000_000, topic_id=b"\1" * 16)
IMAGE = GroupImage(
    "consumer",
    5,
    "range",
    "a",
    1_700_000_000_000,
    (MemberImage("a", "i", "client", "/host", 60_000, 10_000, b"sub", b"part"),),
)


def read_back(pair: group_records.KeyValue, offset: int = 0) -> object:
    return parse(Record(offset=offset, key=pair[0], value=pair[1]))


def test_a_commit_in_bytes() -> None:
    """Key v1; value v4: offset, epoch, metadata, commit time, and the topic id as tag 0."""
    key, value = group_records.offset_commit("g", "t", 7, VALUE)
    assert key.hex(" ") == "00 01 00 01 67 00 01 74 00 00 00 07"
    assert value is not None
    assert value.hex(" ") == (
        "00 04 00 00 00 00 00 00 00 2a 00 00 00 03 05 6d 65 74 61 00 00 01 8b cf e5 68 00"
        " 01 00 10" + " 01" * 16
    )


def test_a_group_in_bytes() -> None:
    """Key v2, value v3."""
    key, value = group_records.group_metadata("g", IMAGE)
    assert key.hex(" ") == "00 02 00 01 67"
    assert value is not None
    assert value.startswith(b"\0\3\0\10consumer\0\0\0\5\0\5range\0\1a")
    assert value.endswith(b"\0\0\0\3sub\0\0\0\4part")


def test_what_is_written_can_be_read() -> None:
    written = group_records.offset_commit("g", "t", 7, VALUE)
    again = read_back(written, 99)
    assert isinstance(again, OffsetRecord)
    assert again.value is not None
    assert again.value.record_offset == 99
    again.value.record_offset = -1
    assert again == OffsetRecord("g", "t", 7, VALUE)
    assert read_back(group_records.group_metadata("g", IMAGE)) == GroupMetadataRecord("g", IMAGE)
    assert read_back(group_records.offset_tombstone("g", "t", 7)) == OffsetRecord("g", "t", 7, None)
    assert read_back(group_records.group_tombstone("g")) == GroupMetadataRecord("g", None)
    assert read_back(group_records.new_group("g", 5)) == GroupMetadataRecord(
        "g", GroupImage("", 0, None, None, 5)
    )


def test_an_expiry_of_its_own_takes_an_older_value() -> None:
    """v1 is the only version with room for it, and has none for epoch and topic id."""
    value = OffsetAndMetadata(42, 3, "m", 1, 9_000, topic_id=b"\1" * 16)
    pair = group_records.offset_commit("g", "t", 7, value)
    assert pair[1] is not None
    assert pair[1][:2] == b"\0\1"
    again = read_back(pair)
    assert isinstance(again, OffsetRecord)
    assert again.value == OffsetAndMetadata(42, -1, "m", 1, 9_000, record_offset=0)


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_every_version_can_be_read(version: int) -> None:
    key, _ = group_records.offset_tombstone("g", "t", 7)
    value = CONSUMER_OFFSETS.encode_value(
        OffsetCommitValue(42, 3, "m", 1, 9_000, b"\1" * 16), version
    )
    again = read_back((key, value))
    assert isinstance(again, OffsetRecord)
    assert again.value == OffsetAndMetadata(
        42,
        3 if version >= 3 else -1,
        "m",
        1,
        9_000 if version == 1 else -1,
        b"\1" * 16 if version >= 4 else bytes(16),
        0,
    )


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version_can_be_read(version: int) -> None:
    """Before v1 the session timeout is the rebalance timeout."""
    member = MemberMetadata("a", "i", "client", "/host", 60_000, 10_000, b"sub", b"part")
    value = GroupMetadataValue("consumer", 5, "range", "a", 1_700_000_000_000, [member])
    key, _ = group_records.group_tombstone("g")
    again = read_back((key, CONSUMER_OFFSETS.encode_value(value, version)))
    assert isinstance(again, GroupMetadataRecord)
    assert again.image is not None
    assert again.image.state_timestamp_ms == (1_700_000_000_000 if version >= 2 else -1)
    (line,) = again.image.members
    assert line.rebalance_timeout_ms == (60_000 if version >= 1 else 10_000)
    assert line.instance_id == ("i" if version >= 3 else None)


def test_other_kinds_of_records_are_none_of_a_classic_groups() -> None:
    key = CONSUMER_OFFSETS.encode_key(ConsumerGroupMetadataKey("g"))
    value = CONSUMER_OFFSETS.encode_value(ConsumerGroupMetadataValue(3), 0)
    assert read_back((key, value)) is None
    assert parse(Record(key=b"\x00\x63", value=b"")) is None
    assert parse(Record(key=None, value=b"")) is None
