"""Topics that are joined have as many partitions as each other."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.streams.copartitioning import enforce_copartitioning
from mockbroker.core.groups.streams.faults import TopicConfigurationError
from mockbroker.core.groups.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    new_topology,
)
from mockbroker_protocol import ErrorCode

COUNTS = {"three": 3, "five": 5}


def enforce(
    sources: tuple[str, ...], repartition: dict[str, int], group: CopartitionGroup
) -> dict[str, int]:
    """The counts of the repartition topics; 0 is not fixed, and 2 was computed for those."""
    topics = tuple(InternalTopic(name, count) for name, count in repartition.items())
    subtopology = Subtopology("0", sources, repartition_sources=topics, copartition_groups=(group,))
    decided = {name: count or 2 for name, count in repartition.items()}
    counts = COUNTS | decided
    enforce_copartitioning(new_topology(0, (subtopology,)), decided, counts.__getitem__)
    return decided


def test_a_repartition_topic_follows_the_source_topics() -> None:
    assert enforce(("five",), {"r": 0}, CopartitionGroup((0,), (), (0,))) == {"r": 5}


def test_without_a_source_topic_the_fixed_count_applies_else_the_largest() -> None:
    group = CopartitionGroup((), (), (0, 1))
    assert enforce((), {"a": 7, "b": 0}, group) == {"a": 7, "b": 7}
    assert enforce((), {"a": 0, "b": 0}, group) == {"a": 2, "b": 2}


@pytest.mark.parametrize(
    ("sources", "repartition", "group", "detail"),
    [
        (
            ("three", "five"),
            {},
            CopartitionGroup((0, 1)),
            "Following topics do not have the same number of partitions: [{five=5, three=3}]",
        ),
        (
            ("five",),
            {"r": 4},
            CopartitionGroup((0,), (), (0,)),
            "Number of partitions [4] of repartition topic [r] doesn't match number of partitions "
            "[5] of the source topic.",
        ),
        (
            (),
            {"a": 1, "b": 2},
            CopartitionGroup((), (), (0, 1)),
            "Following topics do not have the same number of partitions: [{a=1, b=2}]",
        ),
    ],
)
def test_counts_that_differ_are_a_fault(
    sources: tuple[str, ...], repartition: dict[str, int], group: CopartitionGroup, detail: str
) -> None:
    with pytest.raises(TopicConfigurationError) as fault:
        enforce(sources, repartition, group)
    assert fault.value.detail == detail


def test_an_index_without_a_topic_is_an_error_of_the_server() -> None:
    with pytest.raises(ApiError) as refused:
        enforce(("five",), {}, CopartitionGroup((3,)))
    assert refused.value.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_empty_group_changes_nothing() -> None:
    assert enforce(("five",), {"r": 4}, CopartitionGroup()) == {"r": 4}
