"""Bulk produce and consume, by each driver and record size."""

from __future__ import annotations

from collections.abc import Mapping

from bench.drivers import DRIVERS, Driver
from bench.model import MEGABYTES_PER_SECOND, Figures, Measure, Running, Scale, Workload
from bench.workloads.support import fresh_topic

RECORD_BYTES = {100: "100 B", 1024: "1 KiB"}


class Bulk:
    """Produce records of one size to one partition, then read them from the beginning."""

    fresh = False
    excluded: Mapping[str, str] = {
        "librdkafka-mock": "keeps only the newest 5 MB of a partition",
    }

    def __init__(self, driver: Driver, record_bytes: int) -> None:
        size = RECORD_BYTES[record_bytes]
        short = size.replace(" ", "")
        self.name = f"bulk-{driver.name}-{short}"
        self._driver, self._record_bytes = driver, record_bytes
        self._produced = Measure(
            f"produce-{driver.name}-{short}",
            f"bulk produce {size}, {driver.title}",
            MEGABYTES_PER_SECOND,
        )
        self._consumed = Measure(
            f"consume-{driver.name}-{short}",
            f"bulk consume {size}, {driver.title}",
            MEGABYTES_PER_SECOND,
        )
        self.measures: tuple[Measure, ...] = (self._produced, self._consumed)

    def prepare(self) -> None:
        self._driver.prepare()

    def run(self, running: Running, scale: Scale) -> Figures:
        whole = scale.bulk_bytes[self._record_bytes] * self._driver.share
        count = int(whole) // self._record_bytes
        bootstrap = running.bootstrap_servers
        with fresh_topic(running) as topic:
            produced = self._driver.produce(bootstrap, topic, count, self._record_bytes)
            consumed = self._driver.consume(bootstrap, topic, count, scale.consume_passes)
        return {self._produced.name: produced, self._consumed.name: consumed}


def bulk_workloads() -> list[Workload]:
    return [Bulk(driver, size) for driver in DRIVERS for size in RECORD_BYTES]
