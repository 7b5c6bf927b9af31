"""What waiting for company costs and brings: linger.ms 0 against 20, by confluent-kafka.

Throughput is that of a burst, as fast as the client takes records. Latency is that of records which
come one by one, a millisecond apart, from produce() to the report of their delivery.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from bench.model import (
    MILLISECONDS,
    PER_SECOND,
    Figures,
    Measure,
    Running,
    Scale,
    UnavailableError,
)
from bench.workloads.support import fresh_topic, percentile

LINGER_MS = (0, 20)
RECORD_BYTES = 100
# Records of the burst for each one of the others.
BURST_SHARE = 20
APART_S = 0.001
TIMEOUT_S = 60.0


class Linger:
    """The same records with each linger, one after the other."""

    name = "linger"
    fresh = False
    excluded: Mapping[str, str] = {}
    measures: tuple[Measure, ...] = tuple(
        measure
        for linger_ms in LINGER_MS
        for measure in (
            Measure(f"linger-{linger_ms}-rate", f"linger.ms={linger_ms}, records", PER_SECOND),
            Measure(f"linger-{linger_ms}-p99", f"linger.ms={linger_ms}, latency p99", MILLISECONDS),
        )
    )

    def prepare(self) -> None:
        try:
            import confluent_kafka  # noqa: F401
        except ImportError:
            raise UnavailableError("confluent-kafka is not installed") from None

    def run(self, running: Running, scale: Scale) -> Figures:
        figures: Figures = {}
        for linger_ms in LINGER_MS:
            with fresh_topic(running) as topic:
                producer = _producer(running, linger_ms)
                _burst(producer, topic, 100)  # until it is connected
                burst = scale.latencies * BURST_SHARE
                figures[f"linger-{linger_ms}-rate"] = burst / _burst(producer, topic, burst)
                latencies = _one_by_one(producer, topic, scale.latencies)
                figures[f"linger-{linger_ms}-p99"] = percentile(latencies, 99)
        return figures


def _producer(running: Running, linger_ms: int) -> Any:
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": running.bootstrap_servers,
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 1_000_000,
        }
    )


def _burst(producer: Any, topic: str, count: int) -> float:
    """Seconds from the first record to the last report."""
    started_s = time.perf_counter()
    value = b"x" * RECORD_BYTES
    for _ in range(count):
        producer.produce(topic, value)
    _flush(producer)
    return time.perf_counter() - started_s


def _one_by_one(producer: Any, topic: str, count: int) -> list[float]:
    """Seconds that each record took."""
    took_s: list[float] = []
    value = b"x" * RECORD_BYTES

    def reported(sent_s: float, error: object, _message: object) -> None:
        if error is None:
            took_s.append(time.perf_counter() - sent_s)

    for _ in range(count):
        producer.produce(topic, value, on_delivery=partial(reported, time.perf_counter()))
        producer.poll(APART_S)
    _flush(producer)
    return took_s


def _flush(producer: Any) -> None:
    left = producer.flush(TIMEOUT_S)
    if left:
        raise RuntimeError(f"{left} records were not acknowledged in {TIMEOUT_S:.0f} s")
