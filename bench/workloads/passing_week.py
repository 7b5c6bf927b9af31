"""Fill a cluster in this process, let a week pass in virtual time, and print how long that took."""

from __future__ import annotations

import json
import time

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker_protocol.records import Record, build_batch

PARTITIONS = 100
RECORDS = 100  # of each partition, every one in a batch of its own


def seconds_of_a_week() -> float:
    """Default retention: seven days, looked at every five minutes."""

    def fill(cluster: CoreCluster) -> None:
        now_ms = cluster.runtime.now_ms()
        for partition in cluster.topics["old"].partitions:
            for number in range(RECORDS):
                record = Record(timestamp=now_ms, value=b"%d" % number)
                partition.append_records(build_batch([record]), now_ms)

    with Cluster(brokers=3, topics={"old": PARTITIONS}) as kafka:
        kafka.call(fill)
        kafka.clock.freeze()
        kafka.clock.advance(0)  # what it needs is imported
        begun = time.perf_counter()
        kafka.clock.advance("7d")
        kafka.clock.advance("5m")
        seconds = time.perf_counter() - begun
        if kafka.records("old"):
            raise RuntimeError("there are records that should have expired")
    return seconds


if __name__ == "__main__":
    print(json.dumps({"seconds": seconds_of_a_week()}))
