"""Requests about share groups to a cluster without sockets, and its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mockbroker.core.groups.share.group import ShareGroup
from mockbroker_protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
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
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.group_node import GroupNode

Shares = dict[str, list[int]]


class ShareNode(GroupNode):
    """A broker that leads all of `__consumer_offsets`; topic "t" has three partitions.

    There is no time between two assignments unless a test sets one.
    """

    def __init__(self, *, configs: Mapping[str, str] | None = None, **options: Any) -> None:
        defaults = {
            "group.share.assignment.interval.ms": "0",
            "offsets.topic.num.partitions": "1",
            "share.coordinator.state.topic.num.partitions": "1",
        }
        super().__init__(configs=defaults | dict(configs or {}), **options)

    # ------------------------------------------------------------------------------------ members

    def beats(self, group: str, member: str, epoch: int, *topics: str, **fields: Any) -> Any:
        """ShareGroupHeartbeat; with topics it is a full one."""
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=list(topics) or None,
            **fields,
        )
        return self.ask(request, 1)

    def joins(self, group: str, member: str, *topics: str, **fields: Any) -> Any:
        return self.beats(group, member, 0, *(topics or ("t",)), **fields)

    def leaves(self, group: str, member: str) -> Any:
        return self.beats(group, member, -1)

    def stable(self, *members: str, group: str = "g", topics: Sequence[str] = ("t",)) -> None:
        """Join members, and heartbeat until each is at the target."""
        for member in members:
            assert self.joins(group, member, *topics).error_code == 0
        for _ in range(3):
            for member in members:
                self.ticks(group, member)

    def ticks(self, group: str, member: str) -> Any:
        """A plain heartbeat at the member's epoch."""
        return self.beats(group, member, self.share_group(group).members[member].epoch)

    def share_group(self, group: str = "g", broker: int = 1) -> ShareGroup:
        found = self.shard(group, broker).shares.get(group)
        assert found is not None
        return found

    def assigned(self, group: str = "g") -> dict[str, Shares]:
        """The partitions of each member, by topic name."""
        return {
            member_id: self.by_name(member.assigned)
            for member_id, member in self.share_group(group).members.items()
        }

    def by_name(self, partitions: Mapping[bytes, Any]) -> Shares:
        names = {topic.topic_id: name for name, topic in self.cluster.topics.items()}
        return {names.get(topic_id, "?"): sorted(ps) for topic_id, ps in partitions.items()}

    def noted(self, group: str = "g") -> dict[str, object]:
        """The share partitions that the group notes, by topic name."""
        share = self.share_group(group).partitions
        return {
            "initializing": {e.name: sorted(e.partitions) for e in share.initializing.values()},
            "initialized": {e.name: sorted(e.partitions) for e in share.initialized.values()},
            "deleting": sorted(share.deleting.values()),
        }

    # ------------------------------------------------------------------------------ administration

    def describes(self, *groups: str, **fields: Any) -> Any:
        return self.ask(ShareGroupDescribeRequest(list(groups), **fields), 1).groups

    def deletes(self, *groups: str) -> dict[str, int]:
        answer = self.ask(DeleteGroupsRequest(list(groups)), 2)
        return {each.group_id: each.error_code for each in answer.results}

    def start_delete(self, *groups: str) -> Callable[[], dict[str, int]]:
        """DeleteGroups whose answer is asked for later."""
        reply = self.send(DeleteGroupsRequest(list(groups)), 2)

        def errors() -> dict[str, int]:
            return {each.group_id: each.error_code for each in reply.response.results}

        return errors

    def offsets(
        self, group: str = "g", topics: Mapping[str, Sequence[int]] | None = None, version: int = 1
    ) -> Any:
        """DescribeShareGroupOffsets of one group: of all topics or of some."""
        wanted = None
        if topics is not None:
            wanted = [
                DescribeShareGroupOffsetsRequestTopic(name, list(ps)) for name, ps in topics.items()
            ]
        row = DescribeShareGroupOffsetsRequestGroup(group, wanted)
        return self.ask(DescribeShareGroupOffsetsRequest([row]), version).groups[0]

    def alters(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> Any:
        """AlterShareGroupOffsets: start offsets by topic and partition."""
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                name, [AlterShareGroupOffsetsRequestPartition(p, at) for p, at in starts.items()]
            )
            for name, starts in offsets.items()
        ]
        return self.ask(AlterShareGroupOffsetsRequest(group, topics), 0)

    def forgets(self, group: str, *topics: str) -> Any:
        """DeleteShareGroupOffsets."""
        rows = [DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
        return self.ask(DeleteShareGroupOffsetsRequest(group, rows), 0)
