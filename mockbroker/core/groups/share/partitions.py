"""The share partitions of a group, as its ShareGroupStatePartitionMetadata record has them.

`moved` applies an event by the table `states.PARTITION_EVENTS`. The record has no times: all
initializations count from the last record, because Kafka notes the time at which it replays one.

Source: ShareGroup.ShareGroupStatePartitionMetadataInfo, GroupMetadataManager.combineInitMaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.modern.topics import TopicSource
from mockbroker.core.groups.share.states import PARTITION_EVENTS, PartitionEvent, SetChange

UNKNOWN_TOPIC = "<UNKNOWN>"  # the name of a topic that is deleted

# Partitions by topic id.
Partitions: TypeAlias = "Mapping[bytes, frozenset[int]]"


class TopicPartitions(msgspec.Struct, frozen=True):
    """The partitions of one topic, with the name that it had when they were noted."""

    name: str
    partitions: frozenset[int]


class SharePartitions(msgspec.Struct, frozen=True):
    """All share partitions of a group; of a deleting topic it has only the name."""

    initializing: Mapping[bytes, TopicPartitions] = msgspec.field(default_factory=dict)
    initialized: Mapping[bytes, TopicPartitions] = msgspec.field(default_factory=dict)
    deleting: Mapping[bytes, str] = msgspec.field(default_factory=dict)

    def initialized_partitions(self) -> dict[bytes, frozenset[int]]:
        """The partitions with state, by topic id."""
        return {topic_id: each.partitions for topic_id, each in self.initialized.items()}

    def with_state(self) -> dict[bytes, frozenset[int]]:
        """The initialized and the initializing partitions, by topic id."""
        both: dict[bytes, frozenset[int]] = self.initialized_partitions()
        for topic_id, each in self.initializing.items():
            both[topic_id] = both.get(topic_id, frozenset()) | each.partitions
        return both


NO_PARTITIONS = SharePartitions()


def moved(
    before: SharePartitions, event: PartitionEvent, which: Partitions, topics: TopicSource
) -> SharePartitions:
    """The share partitions after an event that concerns `which`.

    Events about topics (`deleting`, and deletions) concern all partitions of the topics in `which`.
    """
    effects = PARTITION_EVENTS[event]
    whole = effects.deleting is not SetChange.KEEP
    initializing = _changed(before.initializing, effects.initializing, which, topics, whole=whole)
    if event is PartitionEvent.INITIALIZE:
        # Whatever initializes is not being deleted, not only the newest.
        gone: Iterable[bytes] = initializing
    else:
        gone = which
    deleting = dict(before.deleting)
    if effects.deleting is SetChange.ADD:
        deleting |= {topic_id: name_of(topics, topic_id) for topic_id in which}
    elif effects.deleting is SetChange.REMOVE:
        deleting = {t: name for t, name in deleting.items() if t not in gone}
    return SharePartitions(
        initializing,
        _changed(before.initialized, effects.initialized, which, topics, whole=whole),
        deleting,
    )


def _changed(
    lines: Mapping[bytes, TopicPartitions],
    change: SetChange,
    which: Partitions,
    topics: TopicSource,
    *,
    whole: bool,
) -> Mapping[bytes, TopicPartitions]:
    if change is SetChange.KEEP:
        return lines
    after = dict(lines)
    for topic_id, partitions in which.items():
        former = lines.get(topic_id)
        had = former.partitions if former else frozenset()
        if change is SetChange.ADD:
            after[topic_id] = TopicPartitions(name_of(topics, topic_id), had | partitions)
        elif former is not None:
            left = frozenset() if whole else had - partitions
            if left:
                after[topic_id] = TopicPartitions(former.name, left)
            else:
                del after[topic_id]
    return after


def name_of(topics: TopicSource, topic_id: bytes) -> str:
    """The topic's present name."""
    topic = topics.by_id(topic_id)
    return UNKNOWN_TOPIC if topic is None else topic.name


def to_initialize(
    share: SharePartitions,
    names: Iterable[str],
    topics: TopicSource,
    *,
    retry: bool,
) -> dict[bytes, frozenset[int]]:
    """The partitions of subscribed topics without share state, by topic id.

    With `retry` the initializing ones count as well, because they take too long
    (GroupMetadataManager.subscribedTopicsChangeMap).
    """
    known = share.initialized_partitions() if retry else share.with_state()
    missing: dict[bytes, frozenset[int]] = {}
    for name in sorted(names):
        topic = topics.by_name(name)
        if topic is None:
            continue
        left = frozenset(range(topic.partitions)) - known.get(topic.topic_id, frozenset())
        if left:
            missing[topic.topic_id] = left
    return missing
