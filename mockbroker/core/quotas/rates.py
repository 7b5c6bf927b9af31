"""The two measurements of quotas: Kafka's rate over sampled windows, and its token bucket.

A *rate* is a sum over `samples` windows of `window_ms` each, divided by the time that they span;
the newest window is open. A *token bucket* fills at the quota's rate up to a *burst*: the tokens of
all windows. It may become negative (KIP-599).

Source: Rate, SampledStat, TokenBucket.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isnan
from typing import NamedTuple

LONG_MAX, INT_MAX = (1 << 63) - 1, (1 << 31) - 1


class Windows(NamedTuple):
    """The number of windows and their length (`quota.window.num`, `quota.window.size.seconds`)."""

    samples: int
    window_ms: int

    @classmethod
    def configured(cls, config_int: Callable[[str], int], prefix: str = "") -> Windows:
        """The windows of two broker configs; `prefix` is "controller." for mutations."""
        seconds = config_int(f"{prefix}quota.window.size.seconds")
        return cls(config_int(f"{prefix}quota.window.num"), seconds * 1000)


class _Sample:
    """One window: its start, the time of the last record, the sum."""

    __slots__ = ("last_ms", "start_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.total = 0.0


class WindowedRate:
    """A rate per second over the last windows."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._samples = [_Sample(now_ms)]
        self._current = 0

    @property
    def last_ms(self) -> int:
        """The time of the last record."""
        return self._samples[self._current].last_ms

    def record(self, value: float, now_ms: int) -> None:
        """Add to the current window; a negative value undoes an earlier record."""
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.window_ms:
            sample = self._next(now_ms)
        sample.total += value
        sample.last_ms = now_ms

    def _next(self, now_ms: int) -> _Sample:
        # One more than the number of windows, because the oldest may overlap the measured time.
        self._current = (self._current + 1) % (self._windows.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def span_ms(self, now_ms: int) -> int:
        """The time span of the rate: at least that of all windows but the open one."""
        self._purge(now_ms)
        samples, window_ms = self._windows
        elapsed = now_ms - min(sample.start_ms for sample in self._samples)
        missing = samples - 1 - elapsed // window_ms
        if missing > 0:
            elapsed += missing * window_ms
        return max(elapsed, 1)

    def per_second(self, now_ms: int) -> float:
        self._purge(now_ms)
        total = sum(sample.total for sample in self._samples)
        return total / (self.span_ms(now_ms) / 1000)

    def _purge(self, now_ms: int) -> None:
        samples, window_ms = self._windows
        for sample in self._samples:
            if now_ms - sample.last_ms >= samples * window_ms:
                sample.reset(now_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """The wait after which the rate is at the limit; 0 if it is not above it.

        A rate O over a window W falls to T when W grows by X: O·W / (W + X) = T.
        """
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        return rounded((rate - limit) / limit * self.span_ms(now_ms))


class SimpleRate(WindowedRate):
    """A rate over the time since its oldest window began, at least one window (SimpleRate)."""

    __slots__ = ()

    def span_ms(self, now_ms: int) -> int:
        """The time span of the rate."""
        self._purge(now_ms)
        elapsed = now_ms - min(sample.start_ms for sample in self._samples)
        return max(elapsed, self._windows.window_ms)


class TokenBucket:
    """Tokens that are refilled at a rate. The count may be negative."""

    __slots__ = ("_last_ms", "_windows", "tokens")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self.tokens = 0.0
        self._last_ms = 0  # so that the first refill fills the bucket

    @property
    def last_ms(self) -> int:
        """The time of the last refill."""
        return self._last_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """The wait until the count is not negative."""
        self._refill(limit, now_ms)
        return rounded(-self.tokens / limit * 1000) if self.tokens < 0 else 0

    def take(self, count: float, limit: float, now_ms: int) -> None:
        self._refill(limit, now_ms)
        self.tokens = min(self._burst(limit), self.tokens - count)

    def _refill(self, limit: float, now_ms: int) -> None:
        elapsed_s = (now_ms - self._last_ms) / 1000
        self.tokens = min(self._burst(limit), self.tokens + limit * elapsed_s)
        self._last_ms = now_ms

    def _burst(self, limit: float) -> float:
        samples, window_ms = self._windows
        return samples * window_ms / 1000 * limit


def rounded(value: float) -> int:
    """The nearest long, halves up, as Math.round: 0 for NaN, and a bound for a value beyond it."""
    if isnan(value):
        return 0
    return LONG_MAX if value >= LONG_MAX else floor(max(value, -LONG_MAX) + 0.5)


def truncated(value: float) -> int:
    """A double cast to an int: 0 for NaN, and the nearest bound beyond the bounds."""
    return 0 if isnan(value) else int(max(min(value, INT_MAX), -INT_MAX))
