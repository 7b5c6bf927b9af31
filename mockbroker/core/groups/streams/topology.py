"""The topology of an application, as its members send it and as it is in the log.

Source: StreamsTopology.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.errors import ApiError
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker_protocol.messages import consumer_offsets as stored
    from mockbroker_protocol.messages import streams_group_heartbeat as sent


class InternalTopic(msgspec.Struct, frozen=True):
    """A repartition or changelog topic. 0 partitions or replicas: not fixed by the application."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(msgspec.Struct, frozen=True):
    """Topics that must have as many partitions as each other: indexes into a subtopology's."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(msgspec.Struct, frozen=True):
    """One subtopology. Kafka 4.3 refuses regular expressions, but reads them from the log."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @classmethod
    def of(cls, message: sent.Subtopology | stored.Subtopology) -> Subtopology:
        """The subtopology of a heartbeat or of a record."""
        return cls(
            message.subtopology_id,
            tuple(message.source_topics),
            tuple(message.source_topic_regex),
            _internal_topics(message.state_changelog_topics),
            tuple(message.repartition_sink_topics),
            _internal_topics(message.repartition_source_topics),
            tuple(
                CopartitionGroup(
                    tuple(group.source_topics),
                    tuple(group.source_topic_regex),
                    tuple(group.repartition_source_topics),
                )
                for group in message.copartition_groups
            ),
        )

    def read_topics(self) -> tuple[str, ...]:
        """The topics whose partitions are the partitions of its tasks."""
        return self.source_topics + tuple(each.name for each in self.repartition_sources)


def _internal_topics(
    topics: Sequence[sent.TopicInfo | stored.StreamsGroupTopologyValueTopicInfo],
) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            each.name,
            each.partitions,
            each.replication_factor,
            tuple((config.key, config.value) for config in each.topic_configs),
        )
        for each in topics
    )


class Topology(msgspec.Struct, frozen=True, dict=True):
    """A topology; `epoch` rises when the application changes it."""

    epoch: int
    by_id: dict[str, Subtopology]

    @cached_property
    def subtopology_of(self) -> dict[str, Subtopology]:
        """The subtopology that reads a topic, by topic."""
        return {topic: each for each in self.in_order() for topic in each.read_topics()}

    def in_order(self) -> list[Subtopology]:
        """The subtopologies in the order of Java's HashMap, in which Kafka configures them."""
        return [self.by_id[each] for each in hash_order(self.by_id, string_hash)]

    def internal_topics(self) -> list[str]:
        """The repartition topics and changelogs of the application."""
        return [
            topic.name
            for each in self.in_order()
            for topic in (*each.repartition_sources, *each.changelogs)
        ]

    def required_topics(self) -> dict[str, None]:
        """Each topic that the application reads or restores from."""
        topics: dict[str, None] = {}
        for each in self.in_order():
            topics.update(dict.fromkeys(each.read_topics()))
            topics.update((changelog.name, None) for changelog in each.changelogs)
        return topics


def new_topology(epoch: int, subtopologies: tuple[Subtopology, ...]) -> Topology:
    """A topology from a request. Raises ApiError for a negative epoch and for equal ids, in both
    cases UNKNOWN_SERVER_ERROR as in Kafka, whose coordinator runs into an exception.
    """
    by_id = {each.subtopology_id: each for each in subtopologies}
    if epoch < 0 or len(by_id) < len(subtopologies):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Topology(epoch, by_id)
