"""Numbers of quotas are cast as in Java, whatever a client has set."""

from __future__ import annotations

import math

import pytest

from mockbroker.core.quotas.rates import rounded, truncated


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.5, 1),
        (-0.5, 0),
        (1.4, 1),
        (math.nan, 0),
        (2.0**31, 2**31),
        (1e300, 2**63 - 1),
        (math.inf, 2**63 - 1),
        (-math.inf, -(2**63)),
    ],
)
def test_a_throttle_time_is_rounded_to_a_long(value: float, number: int) -> None:
    """QuotaUtils.throttleTime: `Math.round`."""
    assert rounded(value) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [(1.9, 1), (-1.9, -1), (math.nan, 0), (1e300, 2**31 - 1), (math.inf, 2**31 - 1)],
)
def test_a_number_of_bytes_is_cast_to_an_int(value: float, number: int) -> None:
    assert truncated(value) == number
