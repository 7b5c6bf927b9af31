"""The configured topology: partition counts of internal topics, tasks, and what is missing.

Kafka computes some of it in the order of hash maps, where it matters: for a repartition topic
whose writers have sources of unknown size, and in messages that name the first fault.

Source: InternalTopicManager, ConfiguredTopology, RepartitionTopics, ChangelogTopics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mockbroker.core.errors import ApiError, LimitError
from mockbroker.core.groups.streams.copartitioning import enforce_copartitioning
from mockbroker.core.groups.streams.faults import TopicConfigurationError
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker.core.groups.streams.topology import InternalTopic, Subtopology, Topology
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker.core.limits import STREAMS_TASKS_MAX
from mockbroker_protocol import ErrorCode

DEFAULT_REPLICATION = -1
SHOWN_TOPICS_MAX = 3

# The number of partitions of a topic that exists, else None.
PartitionCount = Callable[[str], int | None]


class CreatableTopic(NamedTuple):
    """An internal topic to create; -1 replicas: the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology whose internal topics have their partition counts."""

    subtopology: Subtopology
    tasks: int
    repartition_sources: tuple[InternalTopic, ...]
    changelogs: tuple[InternalTopic, ...]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


class ConfiguredTopology(NamedTuple):
    """A topology compared with the topics of the cluster.

    `subtopologies` are sorted by id, None if the tasks are not known. `missing` are the internal
    topics to create. `fault` is the reason why the topology is not ready.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: Mapping[str, CreatableTopic]
    fault: TopicConfigurationError | None

    @property
    def is_ready(self) -> bool:
        return self.fault is None


def configure(topology: Topology, existing: PartitionCount, tasks_max: int) -> ConfiguredTopology:
    """Compare a topology with the topics that exist.

    Raises ApiError: STREAMS_INVALID_TOPOLOGY, also for more than `tasks_max` tasks, or
    UNKNOWN_SERVER_ERROR where Kafka's coordinator runs into an exception.
    """
    try:
        _check_sources(topology, existing)
        counts = _decide_counts(topology, existing)
        subtopologies = {
            each: _configured(topology.by_id[each], counts, existing)
            for each in sorted(topology.by_id)
        }
        _check_tasks(subtopologies, tasks_max)
        missing = _missing(topology, subtopologies, existing)
    except TopicConfigurationError as fault:
        return ConfiguredTopology(topology.epoch, None, {}, fault)
    found = None
    if missing:
        found = TopicConfigurationError(
            StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_some_of(missing)}"
        )
    return ConfiguredTopology(topology.epoch, subtopologies, missing, found)


def _check_tasks(subtopologies: Mapping[str, ConfiguredSubtopology], tasks_max: int) -> None:
    """Each subtopology has a task for each partition: few topics may make very many tasks."""
    tasks = sum(each.tasks for each in subtopologies.values())
    if tasks > tasks_max:
        raise LimitError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"The topology has {tasks:,} tasks; {STREAMS_TASKS_MAX} is {tasks_max:,}.",
            STREAMS_TASKS_MAX,
        )


def _check_sources(topology: Topology, existing: PartitionCount) -> None:
    missing = {
        name
        for each in topology.by_id.values()
        for name in each.source_topics
        if existing(name) is None
    }
    if missing:
        raise TopicConfigurationError(
            StatusCode.MISSING_SOURCE_TOPICS,
            f"Source topics {_some_of(sorted(missing))} are missing.",
        )


def _some_of(names: Iterable[str]) -> str:
    known = list(names)
    more = len(known) - SHOWN_TOPICS_MAX
    shown = ", ".join(known[:SHOWN_TOPICS_MAX])
    return f"{shown} and {more} additional topics" if more > 0 else shown


# -------------------------------------------------------------------------------- partition counts


def _decide_counts(topology: Topology, existing: PartitionCount) -> dict[str, int]:
    """The partition counts of the internal topics, by name."""
    decided: dict[str, int] = _repartition_counts(topology, existing)

    def count_of(name: str) -> int:
        count = existing(name)
        count = decided.get(name) if count is None else count
        if count is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return count

    enforce_copartitioning(topology, decided, count_of)
    for each in topology.in_order():
        read = each.read_topics()
        if not read:
            raise ApiError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                f"No source topics found for subtopology {each.subtopology_id}",
            )
        tasks = max(map(count_of, read))
        decided.update((changelog.name, tasks) for changelog in each.changelogs)
    return decided


def _repartition_counts(topology: Topology, existing: PartitionCount) -> dict[str, int]:
    """Fixed counts; a count that is not fixed is that of the topics from which its writer reads."""
    subtopologies = topology.in_order()
    counts = {
        source.name: source.partitions
        for each in subtopologies
        for source in each.repartition_sources
        if source.partitions
    }
    open_sinks = True
    while open_sinks:
        open_sinks = progress = False
        for each in subtopologies:
            for sink in each.repartition_sinks:
                if sink in counts:
                    continue
                count = _largest_source(each, counts, existing)
                if count is None:
                    open_sinks = True
                else:
                    counts[sink] = count
                    progress = True
        if open_sinks and not progress:
            raise ApiError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics. There may be "
                "loops in the topology that cannot be resolved.",
            )
    if any(
        source.name not in counts for each in subtopologies for source in each.repartition_sources
    ):
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "Failed to compute number of partitions for all repartition topics, because a "
            "repartition source topic is never used as a sink topic.",
        )
    return counts


def _largest_source(
    subtopology: Subtopology, counts: Mapping[str, int], existing: PartitionCount
) -> int | None:
    """The largest count known so far of the topics that a subtopology reads."""
    found = [counts.get(each.name) for each in subtopology.repartition_sources]
    found += map(existing, subtopology.source_topics)
    return max((each for each in found if each is not None), default=None)


# ---------------------------------------------------------------------------------- internal topics


def _configured(
    subtopology: Subtopology, counts: Mapping[str, int], existing: PartitionCount
) -> ConfiguredSubtopology:
    sizes = [
        counts[name] if (count := existing(name)) is None else count
        for name in subtopology.read_topics()
    ]
    return ConfiguredSubtopology(
        subtopology,
        max(sizes),
        tuple(_with_count(each, counts) for each in subtopology.repartition_sources),
        tuple(_with_count(each, counts) for each in subtopology.changelogs),
    )


def _with_count(topic: InternalTopic, counts: Mapping[str, int]) -> InternalTopic:
    partitions = topic.partitions or counts[topic.name]
    if partitions < 1:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return InternalTopic(topic.name, partitions, topic.replication_factor, topic.configs)


def _missing(
    topology: Topology,
    subtopologies: Mapping[str, ConfiguredSubtopology],
    existing: PartitionCount,
) -> dict[str, CreatableTopic]:
    """The internal topics that do not exist. An existing one must have the computed count."""
    internal: dict[str, InternalTopic] = {}
    for each in subtopologies.values():
        internal.update((topic.name, topic) for topic in each.repartition_sources)
        internal.update((topic.name, topic) for topic in each.changelogs)
    for name in hash_order(topology.required_topics(), string_hash):
        found, expected = existing(name), internal.get(name)
        if found is not None and expected is not None and found != expected.partitions:
            raise TopicConfigurationError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected "
                f"{expected.partitions}, found {found}",
            )
    return {
        name: _creatable(internal[name])
        for name in hash_order(internal, string_hash)
        if existing(name) is None
    }


def _creatable(topic: InternalTopic) -> CreatableTopic:
    factor = topic.replication_factor or DEFAULT_REPLICATION
    return CreatableTopic(topic.name, topic.partitions, factor, dict(topic.configs))
