"""Each change is a record, and reading the record gives the change back."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer.events import (
    RegexChange,
    ResolvedRegex,
    SubscriptionMetadataTombstone,
)
from mockbroker.core.groups.consumer.members import ClassicMember, ConsumerMember
from mockbroker.core.groups.consumer.records import RECORD_TYPES
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.modern.events import (
    CurrentAssignment,
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.modern.records import ModernGroupRecord
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    GroupMetadataKey,
)
from mockbroker_protocol.messages.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions as TopicPartitions,
)
from mockbroker_protocol.records import Record

T, U = b"t" * 16, b"u" * 16

MEMBER = ConsumerMember(
    member_id="m",
    instance_id="i",
    rack_id="r",
    rebalance_timeout_ms=5,
    client_id="c",
    client_host="/h",
    topic_names=frozenset({"t", "u"}),
    regex="x.*",
    assignor="range",
)
CLASSIC = ConsumerMember(
    member_id="m", classic=ClassicMember(7, (("range", b"blob"), ("sticky", b"")))
)
CURRENT = CurrentAssignment(4, 3, MemberState.UNREVOKED, {T: {0: 2, 5: 4}}, {U: {1: 3}})

CHANGES: list[tuple[int, StoredChange]] = [
    (3, GroupChange(4, -5)),
    (3, GroupChange(None)),
    (4, SubscriptionMetadataTombstone()),
    (5, MemberChange("m", MEMBER)),
    (5, MemberChange("m", CLASSIC)),
    (5, MemberChange("m", None)),
    (6, TargetEpochChange(4, 1_000)),
    (6, TargetEpochChange(None)),
    (7, TargetAssignmentChange("m", {T: frozenset({0, 5}), U: frozenset({1})})),
    (7, TargetAssignmentChange("m", {})),
    (7, TargetAssignmentChange("m", None)),
    (8, CurrentAssignmentChange("m", CURRENT)),
    (8, CurrentAssignmentChange("m", None)),
    (16, RegexChange("x.*", ResolvedRegex(frozenset({"x", "xy"}), 3, 1_000))),
    (16, RegexChange("x.*", None)),
]


def record(key: bytes, value: bytes | None) -> Record:
    return Record(timestamp=0, key=key, value=value)


@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_a_change_survives_the_log(kind: int, change: StoredChange) -> None:
    key, value = RECORD_TYPES.record_of("g", change)
    assert int.from_bytes(key[:2], "big") == kind
    assert RECORD_TYPES.parse(record(key, value)) == ModernGroupRecord("g", change)
    assert change.is_tombstone is (value is None)
    if value is not None:
        assert value[:2] == b"\0\0", "Kafka 4.3 writes version 0 of all of them"


def test_records_without_assignment_epochs_are_older() -> None:
    """Releases before 4.2: the member's epoch stands in, but for a static member that is away."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    for member_epoch, since in ((4, 4), (-2, 0)):
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member_epoch,
            assigned_partitions=[
                TopicPartitions(topic_id=T, partitions=[1], assignment_epochs=None)
            ],
        )
        encoded = CONSUMER_OFFSETS.encode_key(key), CONSUMER_OFFSETS.encode_value(value)
        parsed = RECORD_TYPES.parse(record(*encoded))
        assert parsed is not None
        assert isinstance(parsed.change, CurrentAssignmentChange)
        assert parsed.change.current is not None
        assert parsed.change.current.assigned == {T: {1: since}}


@pytest.mark.parametrize("epochs", [[2], [2, 2, 2]])
def test_partitions_without_an_epoch_each_are_unreadable(epochs: list[int]) -> None:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=4,
        assigned_partitions=[
            TopicPartitions(topic_id=T, partitions=[0, 1], assignment_epochs=epochs)
        ],
    )
    encoded = CONSUMER_OFFSETS.encode_key(key), CONSUMER_OFFSETS.encode_value(value)
    with pytest.raises(DecodeError):
        RECORD_TYPES.parse(record(*encoded))


def test_a_state_of_the_future_is_unknown() -> None:
    key, value = RECORD_TYPES.record_of(
        "g", CurrentAssignmentChange("m", CurrentAssignment(4, 3, MemberState.STABLE, {}, {}))
    )
    assert value is not None
    changed = value[:10] + b"\x09" + value[11:]
    parsed = RECORD_TYPES.parse(record(key, changed))
    assert parsed is not None
    assert isinstance(parsed.change, CurrentAssignmentChange)
    assert parsed.change.current is not None
    assert parsed.change.current.state is MemberState.UNKNOWN


def test_other_records_are_of_others() -> None:
    key = CONSUMER_OFFSETS.encode_key(GroupMetadataKey(group="g"))
    assert RECORD_TYPES.parse(record(key, None)) is None
    assert RECORD_TYPES.parse(Record(timestamp=0, key=None, value=b"")) is None
