"""Records of streams groups: what is written is read back."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.modern.events import (
    CurrentAssignment,
    CurrentAssignmentChange,
    MemberChange,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
)
from mockbroker.core.groups.streams.events import GroupChange, TopologyChange
from mockbroker.core.groups.streams.members import Endpoint, StreamsMember
from mockbroker.core.groups.streams.records import RECORD_TYPES
from mockbroker.core.groups.streams.states import MemberState
from mockbroker.core.groups.streams.tasks import OwnedTasks, Tasks
from mockbroker.core.groups.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.consumer_offsets import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupCurrentMemberAssignmentValueTaskIds,
)
from mockbroker_protocol.records import Record

SUBTOPOLOGY = Subtopology(
    "0",
    ("a", "b"),
    (),
    (InternalTopic("c", 0, 2, (("k", "v"),)),),
    ("r",),
    (InternalTopic("s", 3),),
    (CopartitionGroup((0, 1), (), (0,)),),
)
MEMBER = StreamsMember(
    member_id="m",
    rack_id="rack",
    client_id="client",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=5,
    topology_epoch=2,
    process_id="p",
    endpoint=Endpoint("host", 65535),
    client_tags={"zone": "a"},
)
CURRENT = CurrentAssignment(
    4,
    3,
    MemberState.UNREVOKED,
    OwnedTasks({"0": {0: 2, 1: 4}}, {"1": frozenset({5})}),
    OwnedTasks({"0": {2: 3}}),
)
CHANGES: list[tuple[int, StoredChange]] = [
    (17, GroupChange(3, -7, 2, {"num.standby.replicas": "1"})),
    (17, GroupChange(None)),
    (19, MemberChange("m", MEMBER)),
    (19, MemberChange("m", None)),
    (20, TargetEpochChange(3, 99)),
    (20, TargetEpochChange(None)),
    (21, TargetAssignmentChange("m", Tasks({"0": frozenset({0})}, {"1": frozenset({1})}))),
    (21, TargetAssignmentChange("m", None)),
    (22, CurrentAssignmentChange("m", CURRENT)),
    (22, CurrentAssignmentChange("m", None)),
    (23, TopologyChange(Topology(1, {"0": SUBTOPOLOGY}))),
    (23, TopologyChange(None)),
]


@pytest.mark.parametrize(("record_type", "change"), CHANGES)
def test_a_change_is_read_back_from_its_record(record_type: int, change: StoredChange) -> None:
    key, value = RECORD_TYPES.record_of("g", change)
    assert int.from_bytes(key[:2], "big") == record_type
    read = RECORD_TYPES.parse(Record(key=key, value=value))
    assert read is not None
    assert (read.group_id, read.change) == ("g", change)
    assert change.is_tombstone == (value is None)


def test_the_member_epoch_stands_in_for_missing_assignment_epochs() -> None:
    line = StreamsGroupCurrentMemberAssignmentValueTaskIds("0", [1, 2], None)
    value = StreamsGroupCurrentMemberAssignmentValue(member_epoch=6, state=9, active_tasks=[line])
    record = Record(
        key=CONSUMER_OFFSETS.encode_key(StreamsGroupCurrentMemberAssignmentKey("g", "m")),
        value=CONSUMER_OFFSETS.encode_value(value),
    )
    read = RECORD_TYPES.parse(record)
    assert read is not None
    assert isinstance(read.change, CurrentAssignmentChange)
    current = read.change.current
    assert current is not None
    assert current.assigned.active == {"0": {1: 6, 2: 6}}
    assert current.state is MemberState.UNKNOWN


def test_records_of_others_are_not_read() -> None:
    assert RECORD_TYPES.parse(Record(key=None, value=None)) is None
    assert RECORD_TYPES.parse(Record(key=b"\0\x02\0\1g", value=None)) is None
