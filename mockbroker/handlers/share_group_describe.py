"""ShareGroupDescribe (77): epochs, assignments and members of share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    by_handler,
    on_group,
    on_topic,
    requires,
)
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.group_descriptions import GROUP_ROWS, Description, described, refused
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
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.groups.share.group import ShareGroup
    from mockbroker.core.groups.share.members import ShareMember

UNSEEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


@api(
    ApiKey.SHARE_GROUP_DESCRIBE,
    versions=(1, 1),
    authorize=by_handler(
        requires(on_group(AclOperation.DESCRIBE)),
        requires(
            on_topic(AclOperation.DESCRIBE),
            about="each in an assignment",
            otherwise="`TOPIC_AUTHORIZATION_FAILED` for the group",
        ),
    ),
    rows=GROUP_ROWS,
)
def share_group_describe(
    ctx: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    """Groups that the client may not describe come first. A group of another type is not found."""
    if not share_groups_enabled(ctx):
        rows = refused(request.group_ids, _DESCRIPTION, ErrorCode.UNSUPPORTED_VERSION)
        return ShareGroupDescribeResponse(groups=rows)
    return ShareGroupDescribeResponse(groups=described(ctx, request, _DESCRIPTION))


def _describe(_: GroupShard, group: ShareGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.protocol,
        members=[_member(group.topics, member) for member in group.members.values()],
    )


def _topics(described: DescribedGroup) -> set[str]:
    """The topics of the members' assignments."""
    members = described.members
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


_DESCRIPTION = Description(
    DescribedGroup,
    lambda shard: shard.shares,
    _describe,
    _topics,
    UNSEEN_TOPICS,
    explains_coordinator=True,
)
