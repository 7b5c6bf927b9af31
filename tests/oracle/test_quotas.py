"""Rates and token buckets make clients wait as long as Kafka's own classes do, to the ms."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from mockbroker.core.quotas.rates import TokenBucket, WindowedRate, Windows
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

RUNS = 40
START_MS = 1_700_000_000_000
# Steps between events: bursts, within a window, over some, over all of them.
STEPS_MS = (0, 1, 7, 250, 999, 1000, 1001, 4_300, 12_000, 60_000)


class Run(NamedTuple):
    """What happens to one meter: (ms, value) by and by, under a quota."""

    windows: Windows
    quota: float
    events: list[tuple[int, float]]

    def item(self) -> dict[str, Any]:
        return {
            "samples": self.windows.samples,
            "seconds": self.windows.window_ms // 1000,
            "quota": self.quota,
            "events": self.events,
        }


def runs(kind: str, scale: int) -> Iterator[Run]:
    for number in range(RUNS):
        rng = random.Random(f"{kind} {number}")
        now_ms, events = START_MS, []
        for _ in range(60):
            now_ms += rng.choice(STEPS_MS) if rng.random() < 0.8 else rng.randrange(3000)
            events.append((now_ms, rng.choice((1, 10, rng.random() * scale, scale))))
        windows = Windows(rng.choice((1, 2, 11)), rng.choice((1000, 5000)))
        yield Run(windows, rng.choice((0.5, 1, 100, scale / 3)), events)


def test_a_rate_makes_its_client_wait_as_kafka_does(kafka43: JavaPipe) -> None:
    played = list(runs("rate", 50_000))
    answers = kafka43.ask("quota.rate", [run.item() for run in played])
    for run, theirs in zip(played, answers, strict=True):
        rate, ours = WindowedRate(run.windows, run.events[0][0]), []
        for now_ms, value in run.events:
            rate.record(value, now_ms)
            ours.append(rate.throttle_ms(run.quota, now_ms))
        assert ours == theirs["waits"], run
    assert sum(any(theirs["waits"]) for theirs in answers) > RUNS // 2


def test_tokens_are_gone_and_back_as_in_kafka(kafka43: JavaPipe) -> None:
    played = list(runs("tokens", 40))
    answers = kafka43.ask("quota.tokens", [run.item() for run in played])
    for run, theirs in zip(played, answers, strict=True):
        bucket, ours = TokenBucket(run.windows), []
        for now_ms, value in run.events:
            ours.append(bucket.throttle_ms(run.quota, now_ms))
            if ours[-1] == 0:
                bucket.take(value, run.quota, now_ms)
        assert ours == theirs["waits"], run
