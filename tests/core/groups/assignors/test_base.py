"""The assignors by their names, and the order of topics."""

from __future__ import annotations

from mockbroker.core.groups.assignors.base import assignors_by_name, topic_order


def test_topics_come_by_the_hash_of_their_ids() -> None:
    assert topic_order([bytes(15) + b"\x02", bytes(15) + b"\x01"])[0][-1] == 1


def test_there_are_two_assignors() -> None:
    assert set(assignors_by_name()) == {"uniform", "range"}
