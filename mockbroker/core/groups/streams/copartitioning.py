"""Copartitioned topics: topics that are joined must have as many partitions as each other.

Repartition topics of a group follow its source topics. If the group has only repartition topics,
they follow those whose count the application fixes, else the largest. As in Kafka, the fixed ones
of the whole topology are compared then, not those of the group.

Source: CopartitionedTopicsEnforcer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.streams.faults import TopicConfigurationError
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker.core.groups.streams.topology import CopartitionGroup, Subtopology, Topology
from mockbroker_protocol import ErrorCode


def enforce_copartitioning(
    topology: Topology, decided: dict[str, int], count_of: Callable[[str], int]
) -> None:
    """Give the repartition topics of each copartition group their common count, in `decided`.

    Raises TopicConfigurationError (INCORRECTLY_PARTITIONED_TOPICS), and ApiError.
    """
    sources = [source for each in topology.in_order() for source in each.repartition_sources]
    fixed = dict.fromkeys(source.name for source in sources if source.partitions)
    flexible = {source.name for source in sources if not source.partitions}
    groups = [
        _topics(subtopology, group)
        for subtopology in topology.in_order()
        for group in subtopology.copartition_groups
    ]
    for topics in groups:
        decided.update(_enforce(topics, fixed, flexible, count_of))


def _topics(subtopology: Subtopology, group: CopartitionGroup) -> dict[str, None]:
    """The topics of a group; an index without a topic is UNKNOWN_SERVER_ERROR, as in Kafka."""
    sources = subtopology.source_topics
    repartition = [source.name for source in subtopology.repartition_sources]
    pairs = ((sources, group.source_topics), (repartition, group.repartition_source_topics))
    names: dict[str, None] = {}
    for known, indexes in pairs:
        if not all(0 <= each < len(known) for each in indexes):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        names.update(dict.fromkeys(known[each] for each in indexes))
    return names


def _enforce(
    topics: Iterable[str],
    fixed: Mapping[str, None],
    flexible: set[str],
    count_of: Callable[[str], int],
) -> dict[str, int]:
    """The count of each repartition topic of one group."""
    counts = {name: count_of(name) for name in topics}
    repartition = {name: n for name, n in counts.items() if name in fixed or name in flexible}
    others = {name: n for name, n in counts.items() if name not in repartition}
    if not counts:
        return {}
    if others:
        common = _common(others, others)
    elif fixed:
        common = _common({name: count_of(name) for name in fixed}, repartition)
    else:
        common = max(repartition.values())
        if common <= 0:
            raise ApiError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "All topics in the copartition group had undefined partition number: "
                f"[{', '.join(repartition)}]",
            )
    for name, count in repartition.items():
        if name in fixed and count != common:
            raise TopicConfigurationError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match "
                f"number of partitions [{common}] of the source topic.",
            )
    return dict.fromkeys(repartition, common)


def _common(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    """The count that all have."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise TopicConfigurationError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return next(iter(counts.values()))
