"""A member of a streams group on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockbroker.client import BrokerError, Client
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.streams_group_heartbeat import (
    ResponseTaskIds,
    StreamsGroupHeartbeatRequest,
    TopicInfo,
)
from tests.support.streams_node import topology
from tests.support.waiting import wait_until


def assign_at_once(cluster: Any, group: str) -> None:
    """Let a group wait neither before its first assignment nor between two."""
    cluster.configs.groups[group] = {
        "streams.initial.rebalance.delay.ms": "0",
        "streams.assignment.interval.ms": "0",
    }
    cluster.configs.changed()


class StreamsMember:
    """A process with one member, which has its tasks; `error` is that of its last heartbeat."""

    def __init__(self, client: Client, group: str, topic: str, member_id: str) -> None:
        self.group, self.member_id = group, member_id
        self.client = client
        self.error = 0
        self._epoch = 0
        self.tasks: dict[str, dict[str, list[int]]] = {"active": {}, "standby": {}, "warmup": {}}
        self.statuses: list[int] = []
        changelog = TopicInfo(name=f"{group}-changelog")
        self._first: dict[str, Any] = {
            "topology": topology(topic, changelog=changelog),
            "process_id": f"p-{member_id}",
            "rebalance_timeout_ms": 60_000,
        }

    def beat(self) -> None:
        """A heartbeat that reports the owned tasks."""
        owned = {
            f"{kind}_tasks": [ResponseTaskIds(*line) for line in tasks.items()]
            for kind, tasks in self.tasks.items()
        }
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self._epoch,
            **owned,
            **({} if self._epoch else self._first),
        )
        answer: Any = self.client.coordinator(self.group).send(request)
        self.error = answer.error_code
        if self.error:
            return
        self._epoch = answer.member_epoch
        self.statuses = [status.status_code for status in answer.status or ()]
        for kind in self.tasks:
            lines = getattr(answer, f"{kind}_tasks")
            if lines is not None:
                self.tasks[kind] = {line.subtopology_id: line.partitions for line in lines}

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit the offsets of partitions as this member. Raises BrokerError."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, partition), offset in offsets.items():
            row = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, partitions=[]))
            row.partitions.append(OffsetCommitRequestPartition(partition, offset))
        request = OffsetCommitRequest(
            self.group, self._epoch, self.member_id, topics=list(topics.values())
        )
        answer: Any = self.client.coordinator(self.group).send(request)
        for topic_row in answer.topics:
            for each in topic_row.partitions:
                if each.error_code:
                    raise BrokerError(each.error_code, f"commit of {self.group}")

    def leave(self) -> None:
        """Leave the group."""
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=-1
        )
        self.client.coordinator(self.group).send(request)

    def until(self, **tasks: list[int]) -> None:
        """Heartbeat until it has exactly these tasks of each named kind."""

        def there() -> bool:
            self.beat()
            return all(self.tasks[kind].get("0", []) == each for kind, each in tasks.items())

        wait_until(there, what=f"tasks {tasks}")
