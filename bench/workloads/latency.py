"""One record at a time: until it is acknowledged, and until a consumer has it."""

from __future__ import annotations

from collections.abc import Mapping

from bench.drivers import LIBRDKAFKA
from bench.model import MICROSECONDS, Figures, Measure, Running, Scale
from bench.placement import separate_cores
from bench.workloads.support import fresh_topic, percentile

RECORD_BYTES = 100


class _OneAtATime:
    fresh = False
    excluded: Mapping[str, str] = {}
    command: str
    measures: tuple[Measure, ...]

    def prepare(self) -> None:
        LIBRDKAFKA.prepare()

    def run(self, running: Running, scale: Scale) -> Figures:
        with fresh_topic(running) as topic, separate_cores(running.pids):
            latencies = LIBRDKAFKA.latencies(
                self.command, running.bootstrap_servers, topic, scale.latencies, RECORD_BYTES
            )
        p50, p99 = (measure.name for measure in self.measures)
        return {p50: percentile(latencies, 50), p99: percentile(latencies, 99)}


class Sequential(_OneAtATime):
    """Produce with acks=all, the next record after the acknowledgement, librdkafka."""

    name = command = "sequential"
    measures: tuple[Measure, ...] = (
        Measure("sequential-p50", "sequential acks=all produce p50", MICROSECONDS),
        Measure("sequential-p99", "sequential acks=all produce p99", MICROSECONDS),
    )


class Delivery(_OneAtATime):
    """From produce() to the record in a consumer that waits for it, librdkafka."""

    name = command = "delivery"
    excluded: Mapping[str, str] = {
        "librdkafka-mock": "lets a waiting Fetch wait for its whole time"
    }
    measures: tuple[Measure, ...] = (
        Measure("delivery-p50", "produce to consume p50", MICROSECONDS),
        Measure("delivery-p99", "produce to consume p99", MICROSECONDS),
    )
