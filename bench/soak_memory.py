"""Whether the memory of a soak grows.

A leak adds to memory whatever the load is, so memory is compared at an equal number of open
descriptors: each connection has a buffer of 16 KiB and a task. On a busy machine clients give up
and connect again before the cluster has seen that they left, and connections then come and go in
waves. The end of the soak shows whether descriptors are left.

The samples of the first half are warm-up. Those of the second half are averaged by minute, because
neighbouring samples are not independent: a standard error from single samples is far too small. The
means are fitted as a constant, a growth a minute and a cost of a descriptor, by least squares.

The verdict is *grows* if the growth is above `GROWTH_MAX` by three times its standard error,
*steady* if it is not above and that error is small enough to tell, and *not judged* otherwise: also
if there are fewer than `WINDOWS_MIN` minutes.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

GROWTH_MAX = 0.1  # MB a minute
WINDOWS_MIN = 8
JUDGED_FROM_MIN = 2 * (WINDOWS_MIN + 2)
GROWS, STEADY, NOT_JUDGED = "grows", "steady", "not judged"


class Sample(NamedTuple):
    """The memory and the open descriptors of the cluster's process at a time since the start."""

    minutes: float
    megabytes: float
    descriptors: float


class Growth(NamedTuple):
    """MB a minute at an equal number of descriptors, its standard error, and the verdict."""

    growth: float
    error: float
    verdict: str
    why: str = ""

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.verdict}{why}: {self.growth:.3f} +- {self.error:.3f} MB a minute"


def judged(samples: list[Sample]) -> Growth:
    """The growth of the second half of a soak, and the verdict."""
    half = samples[len(samples) // 2 :]
    means = by_minute(half)
    if len(means) < WINDOWS_MIN:
        return Growth(*fit(half), NOT_JUDGED, f"runs from {JUDGED_FROM_MIN} minutes on are")
    growth, error = fit(means)
    if growth - 3 * error > GROWTH_MAX:
        return Growth(growth, error, GROWS)
    if growth > GROWTH_MAX or 3 * error > GROWTH_MAX:
        return Growth(growth, error, NOT_JUDGED, "the error is too large")
    return Growth(growth, error, STEADY)


def by_minute(samples: list[Sample]) -> list[Sample]:
    """The means of the samples of each whole minute, the first and the last minute excepted."""
    minutes = [list(each) for _, each in groupby(samples, lambda sample: int(sample.minutes))]
    return [
        Sample(*(sum(column) / len(each) for column in zip(*each, strict=True)))
        for each in minutes[1:-1]
    ]


def fit(samples: list[Sample]) -> tuple[float, float]:
    """MB a minute at an equal number of descriptors, and its standard error."""
    n = len(samples)
    if n < 4:
        return 0.0, float("inf")
    center = Sample(*(sum(column) / n for column in zip(*samples, strict=True)))
    rows = [Sample(*(a - b for a, b in zip(each, center, strict=True))) for each in samples]
    tt = sum(row.minutes**2 for row in rows)
    td = sum(row.minutes * row.descriptors for row in rows)
    dd = sum(row.descriptors**2 for row in rows)
    tm = sum(row.minutes * row.megabytes for row in rows)
    dm = sum(row.descriptors * row.megabytes for row in rows)
    if not dd:
        dd = 1.0  # the number never changed: its cost is 0
    whole = tt * dd - td * td
    if whole <= 1e-9 * tt * dd:
        return 0.0, float("inf")  # descriptors rise with the time: nobody can tell which it is
    growth = (dd * tm - td * dm) / whole
    cost = (tt * dm - td * tm) / whole
    left = sum((row.megabytes - growth * row.minutes - cost * row.descriptors) ** 2 for row in rows)
    return growth, (left / (n - 3) * dd / whole) ** 0.5
