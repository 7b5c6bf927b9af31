"""Draws are those of `random.Random`: a seed gives the same simulation as ever."""

from __future__ import annotations

import random

import pytest

from mockbroker.simulation.draws import Draws


@pytest.mark.parametrize("seed", ["7 driver", "7 writer 1", 0])
def test_draws_are_those_of_the_standard_generator(seed: str | int) -> None:
    ours, theirs = Draws(seed), random.Random(seed)
    for count in (1, 2, 3, 5, 8, 100, 2**40):
        for _ in range(50):
            assert ours.randint(-3, count) == theirs.randint(-3, count)
            assert ours.random() == theirs.random()
    for count in (1, 2, 3, 7, 64, 1000):
        names = [f"n{number}" for number in range(count)]
        for _ in range(50):
            assert ours.choice(names) == theirs.choice(names)
            assert ours.sample(names, 1) == theirs.sample(names, 1)


def test_nothing_is_drawn_where_there_is_nothing() -> None:
    with pytest.raises(IndexError):
        Draws(1).choice([])
    with pytest.raises(ValueError, match="no number from 2 to 1"):
        Draws(1).randint(2, 1)
