"""Groups: list, describe with lag, reset offsets, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from mockbroker.client.consumer_groups import describe_consumer_group
from mockbroker.client.consuming import EARLIEST, LATEST, Consumer
from mockbroker.client.errors import check
from mockbroker.client.router import Router
from mockbroker_protocol.messages import describe_share_group_offsets as share_offsets
from mockbroker_protocol.messages import share_group_describe, streams_group_describe
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from mockbroker_protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from mockbroker_protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

TopicPartition = tuple[str, int]

NO_OFFSET = -1


class PartitionLag(msgspec.Struct, frozen=True):
    """The lag of a group in one partition, from its committed offset to the log end."""

    topic: str
    partition: int
    committed: int
    log_end: int

    @property
    def lag(self) -> int:
        return max(self.log_end - self.committed, 0)


class ShareOffset(NamedTuple):
    """The start offset of a share partition, and its lag; -1 if there is none yet."""

    topic: str
    partition: int
    start_offset: int
    lag: int


class Groups:
    """Administration of groups."""

    def __init__(self, router: Router, consumer: Consumer) -> None:
        self._router = router
        self._consumer = consumer

    def all(self) -> list[ListedGroup]:
        """All groups by id; each broker lists those that it coordinates."""
        groups: dict[str, ListedGroup] = {}
        for node_id in self._router.nodes():
            response: ListGroupsResponse = self._router.node(node_id).send(ListGroupsRequest())
            check(response.error_code, f"list groups of broker {node_id}")
            groups.update((group.group_id, group) for group in response.groups)
        return [groups[group_id] for group_id in sorted(groups)]

    def describe(self, group: str) -> DescribedGroup:
        """State and members of a group of either protocol.

        Raises `BrokerError`; before version 6 an unknown group is Dead.
        """

        def attempt() -> DescribedGroup:
            connection = self._router.coordinator(group)
            new = describe_consumer_group(connection, group)
            if new is not None:
                return new
            response: DescribeGroupsResponse = connection.send(
                DescribeGroupsRequest(groups=[group])
            )
            described = response.groups[0]
            check(described.error_code, f"group {group}", described.error_message)
            return described

        return self._router.retrying(attempt)

    def type_of(self, group: str) -> str:
        """`classic`, `consumer`, `share` or `streams`; empty for an unknown group."""
        types = (each.group_type for each in self.all() if each.group_id == group)
        return next(types, "").lower()

    def describe_share(self, group: str) -> share_group_describe.DescribedGroup:
        """State and members of a share group (KIP-932). Raises `BrokerError`."""

        def attempt() -> share_group_describe.DescribedGroup:
            request = share_group_describe.ShareGroupDescribeRequest(group_ids=[group])
            response: share_group_describe.ShareGroupDescribeResponse = self._router.coordinator(
                group
            ).send(request)
            (described,) = response.groups
            check(described.error_code, f"group {group}", described.error_message)
            return described

        return self._router.retrying(attempt)

    def share_offsets(self, group: str) -> list[ShareOffset]:
        """The start offset and lag of each share partition, by topic and partition."""

        def attempt() -> list[ShareOffset]:
            asked = share_offsets.DescribeShareGroupOffsetsRequestGroup(group, None)
            response: share_offsets.DescribeShareGroupOffsetsResponse = self._router.coordinator(
                group
            ).send(share_offsets.DescribeShareGroupOffsetsRequest([asked]))
            (answered,) = response.groups
            check(answered.error_code, f"offsets of group {group}", answered.error_message)
            return sorted(
                ShareOffset(topic.topic_name, row.partition_index, row.start_offset, row.lag)
                for topic in answered.topics
                for row in topic.partitions
                if not row.error_code
            )

        return self._router.retrying(attempt)

    def describe_streams(self, group: str) -> streams_group_describe.DescribedGroup:
        """State, members and tasks of a streams group (KIP-1071). Raises `BrokerError`."""

        def attempt() -> streams_group_describe.DescribedGroup:
            request = streams_group_describe.StreamsGroupDescribeRequest(group_ids=[group])
            response: streams_group_describe.StreamsGroupDescribeResponse = (
                self._router.coordinator(group).send(request)
            )
            (described,) = response.groups
            check(described.error_code, f"group {group}", described.error_message)
            return described

        return self._router.retrying(attempt)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The committed offset of each partition that has one."""

        def attempt() -> dict[TopicPartition, int]:
            request = OffsetFetchRequest(
                group_id=group,
                topics=None,
                groups=[OffsetFetchRequestGroup(group_id=group, topics=None)],
            )
            response: OffsetFetchResponse = self._router.coordinator(group).send(request)
            answer = response.groups[0] if response.groups else response
            check(answer.error_code, f"offsets of group {group}")
            return {
                (topic.name, partition.partition_index): partition.committed_offset
                for topic in answer.topics
                for partition in topic.partitions
                if partition.committed_offset != NO_OFFSET
            }

        return self._router.retrying(attempt)

    def lag(self, group: str) -> list[PartitionLag]:
        """Progress in each partition that the group has committed, by topic and partition."""
        committed = self.committed(group)
        lags = []
        for topic in sorted({topic for topic, _ in committed}):
            partitions = sorted(index for name, index in committed if name == topic)
            ends = self._consumer.list_offsets(topic, LATEST, partitions)
            lags += [
                PartitionLag(topic, index, committed[topic, index], ends[index].offset)
                for index in partitions
            ]
        return lags

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set committed offsets of a group without members.

        Raises `BrokerError`: UNKNOWN_MEMBER_ID when it has members.
        """
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, index), offset in offsets.items():
            entry = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, partitions=[]))
            entry.partitions.append(
                OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            )
        request = OffsetCommitRequest(group_id=group, topics=list(topics.values()))

        def attempt() -> None:
            response: OffsetCommitResponse = self._router.coordinator(group).send(request)
            for answered in response.topics:
                for partition in answered.partitions:
                    what = f"offset of {answered.name}-{partition.partition_index} for {group}"
                    check(partition.error_code, what)

        self._router.retrying(attempt)

    def reset(self, group: str, topic: str, to: int) -> dict[TopicPartition, int]:
        """Commit EARLIEST, LATEST or an offset for all partitions of a topic; returns them.

        An offset outside a partition's log is moved to the nearer end of it.
        """
        starts = self._consumer.list_offsets(topic, EARLIEST)
        ends = self._consumer.list_offsets(topic, LATEST)
        offsets = {}
        for index, start in starts.items():
            end = ends[index].offset
            wanted = {EARLIEST: start.offset, LATEST: end}.get(to, to)
            offsets[topic, index] = min(max(wanted, start.offset), end)
        self.commit(group, offsets)
        return offsets

    def delete(self, group: str) -> None:
        """Delete an empty group with its offsets. Raises `BrokerError`."""

        def attempt() -> None:
            connection = self._router.coordinator(group)
            response: DeleteGroupsResponse = connection.send(
                DeleteGroupsRequest(groups_names=[group])
            )
            check(response.results[0].error_code, f"delete group {group}")

        self._router.retrying(attempt)
