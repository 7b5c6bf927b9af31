"""How fast something happens: Kafka's rate over sampled windows, and its token bucket.

A *rate* is a sum over `samples` windows of `window_ms` each, the newest one still open, divided by
the time they span (`Rate` and `SampledStat` of Kafka's metrics). A *token bucket* fills with the
quota's rate up to a *burst* of all windows together; what is taken from it may leave it in debt
(KIP-599).
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple


class Windows(NamedTuple):
    """So many windows of so many ms (`quota.window.num`, `quota.window.size.seconds`)."""

    samples: int
    window_ms: int


class _Sample:
    """What was recorded in one window: when that began, when it was added to last, the sum."""

    __slots__ = ("last_ms", "start_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.total = 0.0


class WindowedRate:
    """Something per second, over the last windows; made when the first of it is recorded."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._samples = [_Sample(now_ms)]
        self._current = 0

    @property
    def last_ms(self) -> int:
        """When something was recorded last."""
        return self._samples[self._current].last_ms

    def record(self, value: float, now_ms: int) -> None:
        """Add to the window of now; a negative value takes back what was added."""
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.window_ms:
            sample = self._next(now_ms)
        sample.total += value
        sample.last_ms = now_ms

    def _next(self, now_ms: int) -> _Sample:
        # One more than there are windows: the oldest may reach into the time that is measured.
        self._current = (self._current + 1) % (self._windows.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def span_ms(self, now_ms: int) -> int:
        """The time that the rate is taken over: never less than all windows but the open one."""
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
        """How long nothing more may come for the rate to be back at the limit; 0 if it is there.

        A rate O over a window W comes down to T when W grows by X: O·W / (W + X) = T.
        """
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        return rounded((rate - limit) / limit * self.span_ms(now_ms))


class TokenBucket:
    """Tokens that come back with a rate; negative where more was taken than there was."""

    __slots__ = ("_last_ms", "_windows", "tokens")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self.tokens = 0.0
        self._last_ms = 0  # so that the first look finds it full

    @property
    def last_ms(self) -> int:
        """When it was looked at last."""
        return self._last_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long until it is out of debt."""
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
    """To the nearest whole number, halves up, as Java rounds."""
    return floor(value + 0.5)
