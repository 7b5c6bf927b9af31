"""Creations of internal topics: once at a time, and not again right after an error."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.groups.topic_creations import TopicCreations


class Topic(NamedTuple):
    name: str


A, B = Topic("a"), Topic("b")


def test_a_topic_under_way_is_not_created_again() -> None:
    creations = TopicCreations()
    assert creations.begin([A], 0) == [A]
    assert creations.begin([A, B], 0) == [B]
    creations.end(["a"], {}, 0)
    assert creations.begin([A], 0) == [A]


def test_an_error_is_kept_for_a_while() -> None:
    creations = TopicCreations()
    creations.begin([A], 0)
    creations.end(["a"], {"a": "no"}, 100)
    assert creations.errors(["a", "b"], 99) == {"a": "no"}
    assert creations.begin([A], 99) == []
    assert creations.errors(["a"], 100) == {}
    assert creations.begin([A], 100) == [A]


def test_of_more_than_a_thousand_errors_those_that_end_first_make_room() -> None:
    creations = TopicCreations()
    creations.end([], {f"t{n}": "no" for n in range(999)}, 9)
    creations.end([], {"first": "no"}, 1)
    assert creations.errors(["first", "t0"], 0) == {"first": "no", "t0": "no"}
    creations.end([], {"last": "no"}, 9)
    assert creations.errors(["first", "t0", "last"], 0) == {"t0": "no", "last": "no"}
