"""A topology: its topics, and when two are equal."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.streams.topology import InternalTopic, Subtopology, new_topology
from mockbroker_protocol import ErrorCode

ONE = Subtopology("0", ("a",), (), (InternalTopic("c"),), ("r",))
OTHER = Subtopology("1", repartition_sources=(InternalTopic("r"),))


def test_required_topics_are_read_or_restored_from() -> None:
    topology = new_topology(0, (ONE, OTHER))
    assert set(topology.required_topics()) == {"a", "c", "r"}
    assert topology.subtopology_of == {"a": ONE, "r": OTHER}


def test_topologies_are_equal_by_epoch_and_subtopologies() -> None:
    assert new_topology(0, (ONE, OTHER)) == new_topology(0, (OTHER, ONE))
    assert new_topology(0, (ONE,)) != new_topology(1, (ONE,))
    assert new_topology(0, (ONE,)) != new_topology(0, (OTHER,))


@pytest.mark.parametrize(("epoch", "subtopologies"), [(-1, (ONE,)), (0, (ONE, ONE))])
def test_invalid_ones_are_errors_of_the_server_as_in_kafka(
    epoch: int, subtopologies: tuple[Subtopology, ...]
) -> None:
    with pytest.raises(ApiError) as refused:
        new_topology(epoch, subtopologies)
    assert refused.value.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refused.value.message is None
