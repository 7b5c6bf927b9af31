"""A runner sees the groups of its own type alone, and answers go to their slots."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.runner import answer, ignore_result
from mockbroker.core.groups.shard import GroupShard
from tests.support.consumer_node import ConsumerNode


@pytest.fixture
def shard() -> GroupShard:
    """A shard with the classic groups "first" and "last" and the consumer group "new"."""
    node = ConsumerNode()
    node.member("first")
    assert node.joins("new", "m").error_code == 0
    node.member("last")
    return node.shard()


def test_a_group_of_another_type_is_not_there_for_a_runner(shard: GroupShard) -> None:
    assert shard.classic.get("new") is None
    assert shard.consumers.get("first") is None
    assert shard.classic.get("first") is shard.groups["first"]
    assert shard.consumers.get("new") is shard.groups["new"]


def test_a_group_that_is_not_in_the_table_is_there_for_no_runner(shard: GroupShard) -> None:
    assert (shard.classic.get("none"), shard.consumers.get("none")) == (None, None)


def test_the_groups_of_a_type_come_in_the_order_of_the_table(shard: GroupShard) -> None:
    assert list(shard.classic.all()) == ["first", "last"]
    assert list(shard.consumers.all()) == ["new"]
    assert shard.classic.all()["last"] is shard.groups["last"]


def test_a_group_that_the_shard_forgets_is_gone_for_its_runner(shard: GroupShard) -> None:
    shard.remove_group("first")
    assert list(shard.classic.all()) == ["last"]


def test_an_answer_goes_to_its_slot_once() -> None:
    heard: list[object] = []
    answer(heard.append, "result")
    answer(ignore_result, "unheard")
    assert heard == ["result"]
