"""Take snapshots of a cluster in this process and go back to them; print the time of one each.

The cluster is as a test leaves it: three brokers, a few topics with a few records, a group that has
committed, and with that the fifty partitions of `__consumer_offsets`.
"""

from __future__ import annotations

import json
import statistics
import time

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker_protocol.records import Record, build_batch

ROUNDS = 50


def seconds_there_and_back() -> dict[str, float]:
    """The median time of a snapshot with a restore, and of a reset."""
    with Cluster(brokers=3, topics={"orders": 4, "audit": 1}) as kafka:
        snapshots = kafka.server.snapshots

        def measure(cluster: CoreCluster) -> dict[str, float]:
            cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
            now_ms = cluster.runtime.now_ms()
            for partition in cluster.topics["orders"].partitions:
                batch = build_batch([Record(timestamp=now_ms, value=b"one coffee")])
                partition.append_records(batch, now_ms)
            there_and_back, back_to_nothing = [], []
            for _ in range(ROUNDS):
                begun = time.perf_counter()
                snapshots.restore(snapshots.take())
                there_and_back.append(time.perf_counter() - begun)
            image = snapshots.take()
            for _ in range(ROUNDS):
                begun = time.perf_counter()
                snapshots.reset()
                back_to_nothing.append(time.perf_counter() - begun)
                snapshots.restore(image)
            return {
                "seconds": statistics.median(there_and_back),
                "reset": statistics.median(back_to_nothing),
            }

        return kafka.call(measure)


if __name__ == "__main__":
    print(json.dumps(seconds_there_and_back()))
