"""The configured topology: counts of internal topics, and the faults that stop a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from mockbroker.core.errors import ApiError, LimitError
from mockbroker.core.groups.streams.configured import (
    ConfiguredTopology,
    CreatableTopic,
    configure,
)
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker.core.groups.streams.topology import (
    InternalTopic,
    Subtopology,
    Topology,
    new_topology,
)
from mockbroker.core.limits import STREAMS_TASKS_MAX
from mockbroker_protocol import ErrorCode

Found = Callable[[str], int | None]


def topics(**partitions: int) -> Found:
    return partitions.get


def chained(repartition: InternalTopic, **more: Iterable[InternalTopic]) -> list[Subtopology]:
    """One subtopology that reads "in" and writes a repartition topic, which the other reads."""
    return [
        Subtopology("0", source_topics=("in",), repartition_sinks=("r",)),
        Subtopology(
            "1",
            repartition_sources=(repartition,),
            changelogs=tuple(more.get("changelogs", ())),
        ),
    ]


def compared(topology: Topology, existing: Found) -> ConfiguredTopology:
    return configure(topology, existing, tasks_max=100)


def test_more_tasks_than_the_limit_are_refused() -> None:
    reading_it = tuple(Subtopology(str(n), source_topics=("in",)) for n in range(4))
    topology = new_topology(0, reading_it)
    assert compared(topology, topics(**{"in": 25})).is_ready
    with pytest.raises(LimitError) as refused:
        compared(topology, topics(**{"in": 26}))
    assert refused.value.limit == STREAMS_TASKS_MAX
    assert refused.value.error == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert refused.value.message == (
        "The topology has 104 tasks; mockbroker.streams.tasks.max is 100."
    )


def test_a_repartition_topic_has_as_many_partitions_as_its_writer_reads() -> None:
    topology = new_topology(0, tuple(chained(InternalTopic("r"))))
    configured = compared(topology, topics(**{"in": 4}))
    assert configured.missing == {"r": CreatableTopic("r", 4, -1, {})}
    assert configured.subtopologies is not None
    assert [each.tasks for each in configured.subtopologies.values()] == [4, 4]
    assert configured.fault is not None
    assert configured.fault.status is StatusCode.MISSING_INTERNAL_TOPICS
    assert configured.fault.detail == "Internal topics are missing: r"


def test_a_fixed_count_and_the_configs_of_the_application_are_kept() -> None:
    fixed = InternalTopic("r", 2, 3, (("cleanup.policy", "delete"),))
    changelogs = [InternalTopic("c")]
    topology = new_topology(0, tuple(chained(fixed, changelogs=changelogs)))
    configured = compared(topology, topics(**{"in": 4}))
    assert configured.missing["r"] == CreatableTopic("r", 2, 3, {"cleanup.policy": "delete"})
    assert configured.missing["c"] == CreatableTopic("c", 2, -1, {})


def test_a_topology_is_ready_once_all_its_topics_exist() -> None:
    topology = new_topology(0, tuple(chained(InternalTopic("r"))))
    configured = compared(topology, topics(**{"in": 4, "r": 4}))
    assert configured.is_ready
    assert not configured.missing


def test_an_internal_topic_with_another_count_is_a_fault() -> None:
    topology = new_topology(0, tuple(chained(InternalTopic("r"))))
    configured = compared(topology, topics(**{"in": 4, "r": 3}))
    assert configured.subtopologies is None
    assert configured.fault is not None
    assert configured.fault.status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert configured.fault.detail == (
        "Existing topic r has different number of partitions: expected 4, found 3"
    )


def test_missing_source_topics_are_named_up_to_three() -> None:
    topology = new_topology(0, (Subtopology("0", source_topics=("e", "d", "c", "b", "a")),))
    configured = compared(topology, topics(a=1))
    assert configured.fault is not None
    assert configured.fault.status is StatusCode.MISSING_SOURCE_TOPICS
    assert configured.fault.detail == ("Source topics b, c, d and 1 additional topics are missing.")


@pytest.mark.parametrize(
    ("subtopologies", "reason"),
    [
        ([Subtopology("0")], "No source topics found for subtopology 0"),
        (
            [Subtopology("0", repartition_sources=(InternalTopic("r"),), repartition_sinks=("r",))],
            "There may be loops in the topology that cannot be resolved.",
        ),
        (
            [Subtopology("0", ("in",), repartition_sources=(InternalTopic("r"),))],
            "a repartition source topic is never used as a sink topic.",
        ),
    ],
)
def test_a_topology_that_cannot_be_is_refused(
    subtopologies: list[Subtopology], reason: str
) -> None:
    topology = new_topology(0, tuple(subtopologies))
    with pytest.raises(ApiError) as refused:
        compared(topology, topics(**{"in": 1}))
    assert refused.value.error is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert reason in str(refused.value.message)


def test_a_negative_count_is_an_error_of_the_server_as_in_kafka() -> None:
    topology = new_topology(0, tuple(chained(InternalTopic("r", -3))))
    with pytest.raises(ApiError) as refused:
        compared(topology, topics(**{"in": 1}))
    assert refused.value.error is ErrorCode.UNKNOWN_SERVER_ERROR
