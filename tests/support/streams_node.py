"""Streams groups on a cluster without sockets: members that heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker_protocol.messages.streams_group_heartbeat import (
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.support.group_node import GroupNode


def topology(*topics: str, epoch: int = 0, changelog: TopicInfo | None = None) -> Topology:
    """A topology of one subtopology."""
    changelogs = [] if changelog is None else [changelog]
    lines = [Subtopology("0", source_topics=list(topics), state_changelog_topics=changelogs)]
    return Topology(epoch, lines)


class StreamsNode(GroupNode):
    """A broker that leads all of `__consumer_offsets`; topic "t" has three partitions."""

    def __init__(self, *, configs: Mapping[str, str] | None = None, **options: Any) -> None:
        defaults = {
            "group.streams.assignment.interval.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
        super().__init__(configs=defaults | dict(configs or {}), **options)

    def beats(
        self,
        group: str,
        member: str,
        epoch: int,
        active: Mapping[str, list[int]] | None = None,
        broker: int = 1,
        **fields: Any,
    ) -> Any:
        """StreamsGroupHeartbeat, with the active tasks that the member owns."""
        told: dict[str, Any] = {}
        if active is not None:
            lines = [ResponseTaskIds(each, partitions) for each, partitions in active.items()]
            told = {"active_tasks": lines, "standby_tasks": [], "warmup_tasks": []}
        request = StreamsGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, **(told | fields)
        )
        return self.ask(request, 0, broker=broker)

    def joins(self, group: str, member: str, **fields: Any) -> Any:
        defaults: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "process_id": f"p-{member}",
            "topology": topology("t"),
        }
        return self.beats(group, member, 0, {}, **(defaults | fields))

    def streams_group(self, group: str = "g") -> StreamsGroup:
        found = self.shard(group, 1).streams.get(group)
        assert found is not None
        return found
