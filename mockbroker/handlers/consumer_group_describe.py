"""ConsumerGroupDescribe (69): epochs, assignments and members of consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import each_row, on_group, on_topic, requires
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.group_descriptions import GROUP_ROWS, Description, described
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.consumer.group import ConsumerGroup
    from mockbroker.core.groups.consumer.members import ConsumerMember
    from mockbroker.core.groups.modern.topics import TopicSource
    from mockbroker.core.groups.shard import GroupShard

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


UNSEEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def _topics(described: DescribedGroup) -> set[str]:
    """The topics of the members' assignments and target assignments."""
    return {
        line.topic_name
        for member in described.members
        for part in (member.assignment, member.target_assignment)
        for line in part.topic_partitions
    }


@api(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    versions=(0, 1),
    authorize=each_row(
        on_group(AclOperation.DESCRIBE),
        field="group_ids",
        into="groups",
        name="",
        refused_first=True,
        rules=(
            requires(
                on_topic(AclOperation.DESCRIBE),
                about="each in an assignment or target assignment",
                otherwise="`TOPIC_AUTHORIZATION_FAILED` for the group",
            ),
        ),
    ),
    rows=GROUP_ROWS,
)
def consumer_group_describe(
    ctx: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups. A classic group is not found here."""
    return ConsumerGroupDescribeResponse(groups=described(ctx, request, _DESCRIPTION))


def _describe(_: GroupShard, group: ConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(),
        members=[_member(group, member) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember) -> Member:
    """Partitions that a member is still to revoke belong to its assignment."""
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


_DESCRIPTION = Description(
    DescribedGroup, lambda shard: shard.consumers, _describe, _topics, UNSEEN_TOPICS
)
