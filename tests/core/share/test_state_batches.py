"""State batches: what becomes of those that overlap."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from mockbroker.core.share.state_batches import StateBatch, combine

A1, A2, K1, X1 = (1, 0), (2, 0), (1, 2), (1, 4)
"""Deliveries: count and state (0 available, 2 acknowledged, 4 archived)."""

Given = tuple[int, int, tuple[int, int]]


def batches(*given: Given) -> list[StateBatch]:
    return [StateBatch(first, last, *delivery) for first, last, delivery in given]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([(0, 9, A1)], [(0, 9, A1)]),
        ([(0, 4, A1), (5, 9, A1)], [(0, 9, A1)]),
        ([(5, 9, A1), (0, 4, A1)], [(0, 9, A1)]),
        ([(0, 4, A1), (5, 9, K1)], [(0, 4, A1), (5, 9, K1)]),
        ([(0, 4, A1), (6, 9, A1)], [(0, 4, A1), (6, 9, A1)]),
        ([(0, 9, A1), (0, 9, K1)], [(0, 9, K1)]),
        ([(0, 9, A2), (0, 9, X1)], [(0, 9, A2)]),
        ([(0, 9, A1), (3, 5, K1)], [(0, 2, A1), (3, 5, K1), (6, 9, A1)]),
        ([(0, 9, K1), (3, 5, A1)], [(0, 9, K1)]),
        ([(0, 9, A1), (5, 9, K1)], [(0, 4, A1), (5, 9, K1)]),
        ([(0, 9, A1), (5, 14, K1)], [(0, 4, A1), (5, 14, K1)]),
        ([(0, 9, K1), (5, 14, A1)], [(0, 9, K1), (10, 14, A1)]),
        ([(0, 9, K1), (0, 14, A1)], [(0, 9, K1), (10, 14, A1)]),
        ([(0, 9, A1), (0, 14, K1)], [(0, 14, K1)]),
    ],
)
def test_the_greater_delivery_wins_where_two_overlap(
    given: list[Given], expected: list[Given]
) -> None:
    assert combine(batches(*given), -1) == tuple(batches(*expected))


@pytest.mark.parametrize(
    ("start", "expected"),
    [(-1, [(0, 4, A1), (10, 19, K1)]), (4, [(4, 4, A1), (10, 19, K1)]), (12, [(12, 19, K1)])],
)
def test_what_lies_below_the_start_offset_is_dropped(start: int, expected: list[Given]) -> None:
    given = batches((0, 4, A1), (10, 19, K1))
    assert combine(given, start) == tuple(batches(*expected))


def test_an_invalid_batch_ends_the_work_too() -> None:
    """Kafka's combiner would not return."""
    assert combine(batches((1, 10, A1), (5, 2, K1)), -1) == tuple(batches((1, 10, A1)))


def by_offset(given: list[StateBatch]) -> dict[int, tuple[int, int]]:
    """The greatest delivery of each offset: what a list of batches says, offset by offset."""
    found: dict[int, tuple[int, int]] = {}
    for batch in given:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            found[offset] = max(found.get(offset, (-1, -1)), batch.delivery)
    return found


@pytest.mark.parametrize("seed", range(200))
def test_combined_batches_say_the_same_of_every_offset_and_do_not_overlap(seed: int) -> None:
    rng = random.Random(seed)
    given = []
    for _ in range(rng.randint(0, 12)):
        first = rng.randint(0, 30)
        delivery = rng.choice((A1, A2, K1, X1))
        given.append(StateBatch(first, first + rng.randint(0, 10), *delivery))
    start = rng.choice((-1, rng.randint(0, 30)))
    combined = list(combine(given, start))
    expected = {o: d for o, d in by_offset(given).items() if start in (-1, o) or o > start}
    assert by_offset(combined) == expected, seed
    for left, right in pairwise(combined):
        assert left.last_offset < right.first_offset, seed
