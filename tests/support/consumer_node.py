"""Consumer groups on a cluster without sockets: members that beat, and coordinators that move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mockbroker.core.groups.classic import ClassicGroup
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_subscription,
)
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    RequestTopicPartitions,
)
from tests.support.group_node import GroupNode, join_request, sync_request

REBALANCE_MS = 60_000


def owning(topic: str, partitions: Sequence[int]) -> bytes:
    """The subscription of a classic consumer that says what it owns."""
    parts = [TopicPartition(topic, list(partitions))] if partitions else []
    return encode_subscription(ConsumerProtocolSubscription(topics=[topic], owned_partitions=parts))


class ConsumerNode(GroupNode):
    """A broker that leads all of `__consumer_offsets`; topic "t" has three partitions."""

    def __init__(self, *, configs: Mapping[str, str] | None = None, **options: Any) -> None:
        defaults = {
            "group.consumer.assignment.interval.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
        super().__init__(configs=defaults | dict(configs or {}), **options)

    def beats(
        self,
        group: str,
        member: str,
        epoch: int,
        owned: Mapping[str, Sequence[int]] | None = None,
        version: int = 1,
        **fields: Any,
    ) -> Any:
        """ConsumerGroupHeartbeat, with what the member owns by topic name."""
        reported = None
        if owned is not None:
            topics = self.cluster.topics
            reported = [
                RequestTopicPartitions(topic_id=topics[name].topic_id, partitions=list(ps))
                for name, ps in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topic_partitions=reported,
            **fields,
        )
        return self.ask(request, version)

    def joins(self, group: str, member: str, *topics: str, **fields: Any) -> Any:
        defaults: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": list(topics or ("t",)),
        }
        return self.beats(group, member, 0, {}, **(defaults | fields))

    def leaves(self, group: str, member: str, **fields: Any) -> Any:
        return self.beats(group, member, -1, **fields)

    def consumer_group(self, group: str = "g", broker: int = 1) -> ConsumerGroup:
        found = self.shard(group, broker).consumers.get(group)
        assert found is not None
        return found

    def classic_group(self, group: str = "g", broker: int = 1) -> ClassicGroup:
        found = self.shard(group, broker).classic.get(group)
        assert found is not None
        return found

    def owned(self, group: str, member: str, topic: str = "t") -> list[int]:
        """What a member owns of a topic."""
        topic_id = self.cluster.topics[topic].topic_id
        return sorted(self.consumer_group(group).members[member].assigned.get(topic_id, ()))

    def settle(self, group: str, *members: str) -> None:
        """Members beat, and own what they are told to, until nothing changes any more."""
        for _ in range(3):
            for name in members:
                member = self.consumer_group(group).members[name]
                names = {t.topic_id: t.name for t in self.cluster.topics.values()}
                owned = {names[t]: list(ps) for t, ps in member.assigned.items() if t in names}
                self.beats(group, name, member.epoch, owned)

    def settle_classic(self, group: str, classic: str, *members: str) -> None:
        """As `settle`, with a classic member that joins again and again."""
        for _ in range(3):
            owned = self.owned(group, classic)
            joined = self.ask(join_request(group, classic, protocols={"range": owning("t", owned)}))
            self.ask(sync_request(group, classic, joined.generation_id))
            self.settle(group, *members)

    def reload(self, group: str = "g") -> None:
        """The coordinator forgets everything and reads its log."""
        self.shard(group).unload()

    @contextmanager
    def log_refuses(self) -> Iterator[None]:
        """`__consumer_offsets` takes nothing in: every batch is too large."""
        topic = self.cluster.topics[GROUP_METADATA_TOPIC]
        before = dict(topic.configs.overrides)
        self.cluster.replace_topic_configs(topic, before | {"max.message.bytes": "1"})
        try:
            yield
        finally:
            self.cluster.replace_topic_configs(topic, before)
