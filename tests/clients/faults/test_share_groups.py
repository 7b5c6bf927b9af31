"""Rules and actions on share groups, seen by members on the wire (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mockbroker import Cluster
from mockbroker.client import Client, ConnectionClosedError
from mockbroker.core.errors import ActionError
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.share_group_describe import ShareGroupDescribeRequest
from mockbroker_protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from mockbroker_protocol.records import RecordsError, check_crc
from tests.support.share_members import ACCEPT, REJECT, RELEASE, PartitionMember, ranges
from tests.support.waiting import wait_until

REFUSED = int(ErrorCode.INVALID_RECORD_STATE)


@pytest.fixture
def member(kafka: Cluster, group: str, topic: str) -> Iterator[PartitionMember]:
    """A member, with three records in its topic that it has not fetched yet."""
    with PartitionMember(kafka, group, topic, "m1") as member:
        for value in ("a", "b", "c"):
            kafka.topic(topic).produce(value, partition=0)
        yield member


@pytest.fixture
def other(kafka: Cluster, member: PartitionMember, topic: str) -> Iterator[PartitionMember]:
    """A second member; the first has acquired all three records."""
    assert sum(last - first + 1 for first, last, _ in member.acquired()) == 3
    with PartitionMember(kafka, member.group, topic, "m2") as other:
        yield other


# -- rules -----------------------------------------------------------------------------------------


@pytest.mark.fault("acknowledge_type", "group", "member", "topic", "rewrite", "error_after")
def test_a_lost_acknowledgement_has_been_applied(kafka, member, other, topic):
    """The client learns of an error; the records are gone all the same."""
    told = kafka.faults.add(
        match={"acknowledge_type": "accept", "group": member.group, "member": "m1", "topic": topic},
        do={"error_after": "NETWORK_EXCEPTION"},
    )
    assert member.acknowledged((0, 2, [ACCEPT])) == ErrorCode.NETWORK_EXCEPTION
    assert told.hits == 1
    told.remove()
    with pytest.raises(ActionError, match="no record acquired"):
        kafka.group(member.group).expire_acquisition_locks(topic, 0)
    assert other.acquired() == []


@pytest.mark.fault("acknowledge_type", "error")
def test_a_refused_acknowledgement_on_a_fetch_is_not_applied(kafka, member, other, topic):
    """The fetch of the same request goes on."""
    rule = kafka.faults.add(
        match={"api": "ShareFetch", "acknowledge_type": ["reject", "release"]},
        do={"error": "INVALID_RECORD_STATE"},
    )
    row = member.row((0, 2, [ACCEPT, REJECT, ACCEPT]))
    assert (row.acknowledge_error_code, row.error_code) == (REFUSED, 0)
    assert rule.hits == 1
    row = member.row((0, 2, [ACCEPT]))  # they are acquired still
    assert row.acknowledge_error_code == 0


@pytest.mark.fault("delivery_count", "hide_records")
def test_a_rule_fires_from_the_third_delivery_on(kafka, member, topic):
    rule = kafka.faults.add(
        match={"delivery_count": {"min": 3}, "topic": topic}, do={"hide_records": {}}
    )
    for _ in range(2):
        assert member.row().records
        member.acknowledged((0, 2, [RELEASE]))
    assert rule.hits == 0
    row = member.row()
    assert {count for _, _, count in ranges(row)} == {3}
    assert rule.hits == 1
    assert "delivery_count" in rule.why().failed


@pytest.mark.fault("group", "between_brokers")
def test_hops_to_share_coordinators_have_a_group(kafka, member, other):
    rule, wrong = (
        kafka.faults.add(
            match={"between_brokers": True, "api": "WriteShareGroupState", "group": group},
            do={"observe": {}},
        )
        for group in (member.group, "nobody")
    )
    member.acknowledged((0, 2, [ACCEPT]))
    assert (rule.hits, wrong.hits) == (1, 0)


@pytest.mark.fault("drop_reply")
def test_an_acknowledgement_without_an_answer_has_been_applied(kafka, member, other, topic):
    kafka.faults.add(match={"acknowledge_type": "accept"}, do={"drop_reply": {"then": "close"}})
    with pytest.raises(ConnectionClosedError):
        member.acknowledged((0, 0, [ACCEPT]))
    view = _loaded(kafka, member.group)
    assert view.start_offset == 1
    # The connection was the session's: what was acquired is released.
    wait_until(lambda: _loaded(kafka, member.group).counts.available == 2, what="a release")


@pytest.mark.fault("error", "partition")
def test_a_partition_of_a_fetch_is_refused_and_its_session_goes_on(kafka, member, topic):
    rule = kafka.faults.add(
        match={"api": "ShareFetch", "topic": topic, "partition": 0},
        do={"error": "UNKNOWN_TOPIC_ID"},
    )
    row = member.row()  # only the session names the partition
    assert (row.error_code, row.acquired_records) == (ErrorCode.UNKNOWN_TOPIC_ID, [])
    rule.remove()
    assert member.acknowledged((0, 2, [ACCEPT])) == 0


@pytest.mark.fault("rewrite", "delay", "corrupt_batch")
def test_answers_are_late_rewritten_and_corrupt(kafka, member, topic):
    for do in (
        {"delay": {"by": 5, "phase": "after"}},
        {"rewrite": {"answer": {"responses[].partitions[].acquired_records[].delivery_count": 7}}},
        {"corrupt_batch": {"how": "crc"}},
    ):
        kafka.faults.add(match={"api": "ShareFetch", "delivery_count": 1, "topic": topic}, do=do)
    row = member.row()
    assert {count for _, _, count in ranges(row)} == {7}
    with pytest.raises(RecordsError):
        check_crc(bytes(row.records))


@pytest.mark.fault("group", "error")
def test_one_of_two_groups_is_refused(kafka, member, group, topic):
    """In each API that names several groups."""
    other = f"{group}-b"
    with PartitionMember(kafka, other, topic, "m1"), Client(kafka.bootstrap_servers) as client:
        kafka.faults.add(match={"group": other}, do={"error": "COORDINATOR_NOT_AVAILABLE"})
        both = [group, other]
        groups = [DescribeShareGroupOffsetsRequestGroup(each, None) for each in both]
        for request in (
            ShareGroupDescribeRequest(both),
            StreamsGroupDescribeRequest(both),
            DescribeShareGroupOffsetsRequest(groups),
        ):
            answer = client.coordinator(group).send(request)
            errors = {each.group_id: each.error_code for each in answer.groups}
            assert errors[other] == ErrorCode.COORDINATOR_NOT_AVAILABLE != errors[group]


@pytest.mark.fault("group", "topic", "partition", "error")
def test_one_partition_of_start_offsets_is_refused(kafka, member, group, topic):
    kafka.faults.add(
        match={"api": "DescribeShareGroupOffsets", "group": group, "topic": topic, "partition": 1},
        do={"error": "UNKNOWN_TOPIC_OR_PARTITION"},
    )
    asked = DescribeShareGroupOffsetsRequestTopic(topic, [0, 1])
    groups = [DescribeShareGroupOffsetsRequestGroup(group, [asked])]
    with Client(kafka.bootstrap_servers) as client:
        answer = client.coordinator(group).send(DescribeShareGroupOffsetsRequest(groups))
    (row,) = answer.groups
    errors = {each.partition_index: each.error_code for each in row.topics[0].partitions}
    assert errors == {0: 0, 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.fault("topic", "partition", "error")
def test_a_part_of_a_change_of_start_offsets_is_refused(kafka, member, group, topic):
    """Kafka's error response has one error; a partial refusal has rows."""
    with Client(kafka.bootstrap_servers) as client:
        member.leave()
        coordinator = client.coordinator(group)
        kafka.faults.add(
            match={"topic": topic, "partition": 1}, do={"error": "TOPIC_AUTHORIZATION_FAILED"}
        )
        partitions = [AlterShareGroupOffsetsRequestPartition(index, 1) for index in (0, 1)]
        altering = [AlterShareGroupOffsetsRequestTopic(topic, partitions)]
        answer = coordinator.send(AlterShareGroupOffsetsRequest(group, altering))
        (row,) = answer.responses
        errors = {each.partition_index: each.error_code for each in row.partitions}
        assert errors == {0: 0, 1: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        kafka.faults.clear()
        kafka.faults.add(match={"topic": topic}, do={"error": "TOPIC_AUTHORIZATION_FAILED"})
        deleting = [DeleteShareGroupOffsetsRequestTopic(each) for each in ("other", topic)]
        answer = coordinator.send(DeleteShareGroupOffsetsRequest(group, deleting))
        errors = {each.topic_name: each.error_code for each in answer.responses}
        assert errors == {
            "other": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            topic: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }


def _loaded(kafka, group):
    (view,) = [each for each in kafka.group(group).share_partitions() if each.partition == 0]
    return view


# -- actions ---------------------------------------------------------------------------------------


@pytest.mark.fault("expire_acquisition_locks")
def test_expired_locks_bring_the_records_to_another_member(kafka, member, other, topic):
    assert kafka.group(member.group).expire_acquisition_locks(topic, 0, offsets=[1]) == 1
    assert other.acquired() == [(1, 1, 2)]
    assert kafka.partition(topic, 0).expire_acquisition_locks(member.group, member="m1") == 2
    assert other.acquired() == [(0, 0, 2), (2, 2, 2)]
    assert member.acknowledged((0, 0, [ACCEPT])) == REFUSED


@pytest.mark.fault("hand_out_twice")
def test_a_record_that_is_handed_out_twice_is_the_second_members(kafka, member, other, topic):
    assert kafka.group(member.group).hand_out_twice(topic, 0, offsets=[2]) == 1
    assert other.acquired() == [(2, 2, 2)]
    assert member.acknowledged((2, 2, [ACCEPT])) == REFUSED
    assert other.acknowledged((2, 2, [ACCEPT])) == 0


@pytest.mark.fault("archive_records")
def test_an_archived_record_is_delivered_to_nobody(kafka, member, other, topic):
    assert kafka.group(member.group).archive_records(topic, 0, [1]) == 1
    assert member.acknowledged((1, 1, [ACCEPT])) == REFUSED
    assert member.acknowledged((0, 0, [RELEASE])) == 0
    assert other.acquired() == [(0, 0, 2)]


@pytest.mark.fault("set_delivery_count")
def test_a_record_at_the_delivery_limit_is_archived_when_it_is_released(
    kafka, member, other, topic
):
    assert kafka.group(member.group).set_delivery_count(topic, 0, offsets=[0]) == 1
    assert kafka.group(member.group).set_delivery_count(topic, 0, offsets=[1], count=2) == 1
    assert member.acknowledged((0, 2, [RELEASE])) == 0
    assert sorted(other.acquired()) == [(1, 1, 3), (2, 2, 2)]


@pytest.mark.fault("release_records")
def test_released_records_are_available_again(kafka, member, other):
    assert kafka.group(member.group).release_records() == 3
    assert other.acquired() == [(0, 2, 2)]
    with pytest.raises(ActionError, match="members with records: m2"):
        kafka.group(member.group).release_records(member="m1")


@pytest.mark.fault("move_share_coordinator", "unload_share_coordinator")
def test_an_acknowledgement_survives_a_move_of_the_share_coordinator(kafka, member, other, topic):
    group = kafka.group(member.group)
    view = _loaded(kafka, member.group)
    target = view.coordinator % 3 + 1
    group.move_share_coordinator(topic, 0, target)
    assert member.acknowledged((0, 0, [ACCEPT])) == 0
    group.unload_share_coordinator(topic, 0)
    assert member.acknowledged((1, 2, [ACCEPT])) == 0
    view = _loaded(kafka, member.group)
    assert (view.coordinator, view.start_offset) == (target, 3)


def test_errors_name_what_there_is(kafka, member, topic):
    with pytest.raises(ActionError, match=f"did you mean '{member.group}'"):
        kafka.group(f"{member.group}x").release_records()
    with pytest.raises(ActionError, match=rf"they have fetched from: {topic}-0"):
        kafka.group(member.group).archive_records(topic, 1, [0])
    with pytest.raises(ActionError, match="at 9; in flight it has no records"):
        kafka.group(member.group).archive_records(topic, 0, [9])
