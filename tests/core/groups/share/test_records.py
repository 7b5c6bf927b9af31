"""Each change of a share group is one record, and reads back as it was."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.modern.events import (
    CurrentAssignment,
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.share.events import PartitionsChange
from mockbroker.core.groups.share.members import ShareMember
from mockbroker.core.groups.share.partitions import SharePartitions, TopicPartitions
from mockbroker.core.groups.share.records import RECORD_TYPES
from mockbroker_protocol.records import Record

T = b"t".ljust(16, b"\0")
MEMBER = ShareMember(
    member_id="m",
    rack_id="r",
    client_id="c",
    client_host="/h",
    topic_names=frozenset(("t", "u")),
)
TARGET = {T: frozenset((0, 2))}
SHARE = SharePartitions(
    {T: TopicPartitions("t", frozenset((1,)))},
    {T: TopicPartitions("t", frozenset((0, 2)))},
    {b"u" * 16: "u"},
)
# With the type in front of the key (CoordinatorRecordType).
CHANGES: list[tuple[int, StoredChange, StoredChange]] = [
    (10, MemberChange("m", MEMBER), MemberChange("m", None)),
    (11, GroupChange(3, -7), GroupChange(None)),
    (12, TargetEpochChange(3, 99), TargetEpochChange(None)),
    (13, TargetAssignmentChange("m", TARGET), TargetAssignmentChange("m", None)),
    (
        14,
        CurrentAssignmentChange("m", CurrentAssignment(4, 3, 0, TARGET, {})),
        CurrentAssignmentChange("m", None),
    ),
    (15, PartitionsChange(SHARE), PartitionsChange(None)),
]


@pytest.mark.parametrize(("record_type", "change", "tombstone"), CHANGES)
def test_a_change_reads_back_as_it_was_written(
    record_type: int, change: StoredChange, tombstone: StoredChange
) -> None:
    for each in (change, tombstone):
        key, value = RECORD_TYPES.record_of("g", each)
        assert key[:2] == record_type.to_bytes(2, "big")
        assert (value is None) == each.is_tombstone == (each is tombstone)
        assert value is None or value[:2] == b"\0\0"
        read = RECORD_TYPES.parse(Record(key=key, value=value))
        assert read is not None
        assert (read.group_id, read.change) == ("g", each)


def test_records_of_other_groups_are_none_of_share_groups() -> None:
    assert RECORD_TYPES.parse(Record(key=b"\0\3\0\1g", value=None)) is None
    assert RECORD_TYPES.parse(Record(key=None, value=b"")) is None
