"""Start offsets are altered and deleted step by step, also if the share coordinator refuses."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.share.offsets import alter_offsets, delete_offsets
from mockbroker_protocol import ErrorCode
from tests.support.held_persister import HeldPersister, hold_persister
from tests.support.share_node import ShareNode

E = ErrorCode


@pytest.fixture
def node() -> ShareNode:
    return ShareNode()


@pytest.fixture
def held(node: ShareNode) -> HeldPersister:
    return hold_persister(node)


class Told:
    """What the caller is told, once."""

    def __init__(self) -> None:
        self.answers: list[tuple[ApiError | None, Any]] = []

    def __call__(self, error: ApiError | None, rows: Any) -> None:
        self.answers.append((error, rows))

    @property
    def answer(self) -> tuple[ApiError | None, Any]:
        (only,) = self.answers
        return only


def test_altered_partitions_are_initialized_once_the_state_is_there(
    node: ShareNode, held: HeldPersister
) -> None:
    topic_id, told = node.cluster.topics["t"].topic_id, Told()
    alter_offsets(node.shard(), "g", {topic_id: {0: 5, 2: 7}}, told)
    assert node.noted()["initializing"] == {"t": [0, 2]}
    assert not told.answers
    held.answer()
    error, failed = told.answer
    assert (error, failed) == (None, {topic_id: {}})
    assert node.noted()["initialized"] == {"t": [0, 2]}


def test_refused_partitions_remain_initializing(node: ShareNode, held: HeldPersister) -> None:
    """As in Kafka, so that the next member of the group tries again."""
    topic_id, told = node.cluster.topics["t"].topic_id, Told()
    alter_offsets(node.shard(), "g", {topic_id: {0: 5}}, told)
    held.answer(E.FENCED_STATE_EPOCH)
    error, failed = told.answer
    assert error is None
    assert failed[topic_id][0][0] is E.FENCED_STATE_EPOCH
    assert node.noted()["initializing"] == {"t": [0]}


def test_a_topic_remains_deleting_until_its_state_is_deleted(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    held.answer()
    node.leaves("g", "m")
    for refused in (True, False):
        told = Told()
        delete_offsets(node.shard(), "g", ["t"], told)
        assert node.noted() == {"initializing": {}, "initialized": {}, "deleting": ["t"]}
        assert held.partitions() == [0, 1, 2]
        held.answer(E.COORDINATOR_NOT_AVAILABLE if refused else E.NONE)
        error, (row,) = told.answer
        assert (error, row.name) == (None, "t")
        assert row.error is (E.COORDINATOR_NOT_AVAILABLE if refused else E.NONE)
    assert node.noted()["deleting"] == []


def test_a_coordinator_that_has_moved_cannot_finish_a_deletion(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    held.answer()
    node.leaves("g", "m")
    told = Told()
    delete_offsets(node.shard(), "g", ["t"], told)
    node.cluster.brokers[1].groups.reload("g", 0)
    held.answer()
    error, _ = told.answer
    assert error is not None
    assert error.error is E.NOT_COORDINATOR
    assert node.noted()["deleting"] == ["t"]


def test_a_group_without_share_partitions_has_no_results(node: ShareNode) -> None:
    """Not even errors for its topics, as in Kafka."""
    node.joins("g", "m", "no-such-topic")
    node.leaves("g", "m")
    told = Told()
    delete_offsets(node.shard(), "g", ["t"], told)
    assert told.answer == (None, [])
