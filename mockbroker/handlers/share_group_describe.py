"""ShareGroupDescribe (77): epochs, assignments and members of share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.acls import Operation, ResourceType
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_group,
    on_topic,
    requires,
    split,
)
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.share_groups import share_groups_enabled
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.modern.topics import TopicSource
    from mockbroker.core.groups.share.members import ShareMember

UNSEEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


@api(
    ApiKey.SHARE_GROUP_DESCRIBE,
    versions=(1, 1),
    authorize=by_handler(
        requires(on_group(Operation.DESCRIBE)),
        requires(
            on_topic(Operation.DESCRIBE),
            about="each in an assignment",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for the group",
        ),
    ),
)
def share_group_describe(
    ctx: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    """Groups that the client may not describe come first. A group of another type is not found."""
    if not share_groups_enabled(ctx):
        error = ErrorCode.UNSUPPORTED_VERSION
        rows = [DescribedGroup(group_id=each, error_code=error) for each in request.group_ids]
        return ShareGroupDescribeResponse(groups=rows)
    auth = AuthHelper(ctx)
    granted, denied = split(request.group_ids, lambda each: auth.group(Operation.DESCRIBE, each))
    error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = [DescribedGroup(group_id=each, error_code=error) for each in denied]
    described = [_describe(ctx, auth, group_id) for group_id in granted]
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = auth.operations(ResourceType.GROUP, group.group_id)
    return ShareGroupDescribeResponse(groups=[*refused, *described])


def _describe(ctx: RequestContext, auth: AuthHelper, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=shard, error_message=shard.message)
    group = shard.shares.get(group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} is not a share group."
            if group_id in shard.groups
            else f"Group {group_id} not found.",
        )
    members = [_member(group.topics, member) for member in group.members.values()]
    if not all(auth.topic(Operation.DESCRIBE, name) for name in _topics(members)):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return DescribedGroup(group_id=group_id, error_code=error, error_message=UNSEEN_TOPICS)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.protocol,
        members=members,
    )


def _topics(members: list[Member]) -> set[str]:
    """The topics of the members' assignments."""
    return {line.topic_name for each in members for line in each.assignment.topic_partitions}


def _member(topics: TopicSource, member: ShareMember) -> Member:
    """A deleted topic is left out of the assignment."""
    found = ((topics.by_id(topic_id), ps) for topic_id, ps in member.assigned.items())
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(
                    topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(partitions)
                )
                for topic, partitions in found
                if topic is not None
            ]
        ),
    )
