"""ConsumerGroupDescribe: epochs, assignments and members of groups of the new protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.topics import TopicSource
from mockbroker.core.security.authorized_operations import GROUP_OPERATIONS
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


@api(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1))
def consumer_group_describe(
    ctx: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """A classic group is not found here, as a consumer group is not by DescribeGroups."""
    described = [_describe(ctx, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for line in described:
            if line.error_code == ErrorCode.NONE:
                line.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=described)


def _describe(ctx: RequestContext, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=shard)
    group = shard.consumers.groups.get(group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} is not a consumer group."
            if group_id in shard.groups
            else f"Group {group_id} not found.",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(),
        members=[_member(group, member) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember) -> Member:
    """What a member is about to give up is still its own."""
    owned: dict[bytes, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic_id, partitions in part.items():
            owned.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(group.topics, owned),
        target_assignment=_assignment(group.topics, group.targets.get(member.member_id, {})),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(topics: TopicSource, owned: Mapping[bytes, Iterable[int]]) -> Assignment:
    lines = []
    for topic_id, partitions in owned.items():
        info = topics.by_id(topic_id)
        if info is not None:
            lines.append(
                TopicPartitions(
                    topic_id=topic_id, topic_name=info.name, partitions=sorted(partitions)
                )
            )
    return Assignment(topic_partitions=lines)
