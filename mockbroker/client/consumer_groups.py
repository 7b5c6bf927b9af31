"""Groups of the new protocol (KIP-848), described in the terms of the classic one."""

from __future__ import annotations

from mockbroker.client.connection import Connection
from mockbroker.client.errors import UnsupportedVersionError, check
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    encode_assignment,
)
from mockbroker_protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
)
from mockbroker_protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember


def describe_consumer_group(coordinator: Connection, group: str) -> DescribedGroup | None:
    """State and members, its protocol being the assignor; None if it is no group of this kind.

    Raises BrokerError.
    """
    try:
        response: ConsumerGroupDescribeResponse = coordinator.send(
            ConsumerGroupDescribeRequest(group_ids=[group])
        )
    except UnsupportedVersionError:
        return None
    found = response.groups[0]
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    check(found.error_code, f"group {group}", found.error_message)
    return DescribedGroup(
        group_id=group,
        group_state=found.group_state,
        protocol_type="consumer",
        protocol_data=found.assignor_name,
        members=[_member(member) for member in found.members],
    )


def _member(member: Member) -> DescribedGroupMember:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(line.topic_name, sorted(line.partitions))
            for line in member.assignment.topic_partitions
        ]
    )
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_assignment=encode_assignment(assignment),
    )
