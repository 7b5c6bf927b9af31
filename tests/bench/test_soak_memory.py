"""The growth of a soak's memory, and the verdict."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bench.soak_memory import (
    GROWS,
    GROWTH_MAX,
    JUDGED_FROM_MIN,
    NOT_JUDGED,
    STEADY,
    Growth,
    Sample,
    by_minute,
    fit,
    judged,
)


def samples(
    growth: float,
    *,
    minutes: float = 60,
    noise: float = 0.5,
    connections: Callable[[float], float] = lambda _: 100.0,
) -> list[Sample]:
    """A sample every two seconds; a connection costs 20 KB."""
    dice = random.Random(1)
    found = []
    for number in range(int(30 * minutes)):
        at, open_now = number / 30, connections(number / 30)
        held = 20 + growth * at + 0.02 * open_now + dice.uniform(-noise, noise)
        found.append(Sample(at, held, open_now))
    return found


def wave(minutes: float) -> float:
    """Connections of an overloaded broker: they rise for 40 minutes, and then they are gone."""
    return 100 + 20 * (minutes % 40)


def test_the_growth_is_that_of_the_least_squares() -> None:
    exact = [Sample(n, 5.0 + 2 * n, 7) for n in range(10)]
    assert fit(exact) == (pytest.approx(2.0), pytest.approx(0))
    assert fit([])[1] == float("inf")


def test_the_cost_of_connections_is_no_growth() -> None:
    exact = [Sample(n, 5.0 + 2 * n + 3 * (n % 4), n % 4) for n in range(12)]
    assert fit(exact) == (pytest.approx(2.0), pytest.approx(0, abs=1e-6))


def test_connections_that_rise_with_the_time_leave_the_growth_unknown() -> None:
    assert fit([Sample(n, 5.0 + n, 3 * n) for n in range(12)])[1] == float("inf")


def test_a_mean_is_that_of_a_whole_minute() -> None:
    found = by_minute([Sample(n / 4, n, 2 * n) for n in range(2, 14)])
    assert found == [Sample(1.375, 5.5, 11.0), Sample(2.375, 9.5, 19.0)]


@pytest.mark.parametrize("connections", [lambda _: 100.0, wave])
def test_memory_is_steady_or_grows_whatever_connections_do(
    connections: Callable[[float], float],
) -> None:
    for growth, verdict in ((0.0, STEADY), (GROWTH_MAX / 2, STEADY), (2 * GROWTH_MAX, GROWS)):
        found = judged(samples(growth, connections=connections))
        assert found.verdict == verdict
        assert found.growth == pytest.approx(growth, abs=0.03)


def test_a_run_that_is_too_short_is_not_judged_however_much_it_grew() -> None:
    short = judged(samples(10.9, minutes=5))
    assert short.verdict == NOT_JUDGED
    assert short.growth == pytest.approx(10.9, abs=0.2)
    assert judged(samples(10.9, minutes=JUDGED_FROM_MIN)).verdict == GROWS


def test_a_run_whose_error_is_too_large_is_not_judged() -> None:
    assert judged(samples(0.0, noise=20, minutes=30)).verdict == NOT_JUDGED


def test_the_verdict_is_shown_with_its_figures() -> None:
    assert str(Growth(0.7612, 0.0321, GROWS)) == "grows: 0.761 +- 0.032 MB a minute"
    assert str(judged([])) == ("not judged (runs from 20 minutes on are): 0.000 +- inf MB a minute")
