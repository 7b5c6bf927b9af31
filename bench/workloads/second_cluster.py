"""Print the time of a second cluster in this process, and of one that takes a used one's place."""

from __future__ import annotations

import json
import statistics
import time

from bench import raw
from mockbroker import Cluster

RENEWALS = 100


def see_brokers(kafka: Cluster) -> None:
    host, port = kafka.bootstrap_servers.split(",")[0].rsplit(":", 1)
    if raw.brokers_seen((host, int(port))) == 0:
        raise RuntimeError("the cluster does not answer")


def seconds_to_metadata() -> float:
    begun = time.perf_counter()
    with Cluster(brokers=3) as kafka:
        see_brokers(kafka)
        return time.perf_counter() - begun


def seconds_of_renewal() -> float:
    """The median, without what a client does afterwards."""
    found = []
    with Cluster(brokers=3) as kafka:
        for _ in range(RENEWALS):
            see_brokers(kafka)
            begun = time.perf_counter()
            kafka.renew()
            found.append(time.perf_counter() - begun)
    return statistics.median(found)


if __name__ == "__main__":
    seconds_to_metadata()
    print(json.dumps({"seconds": seconds_to_metadata(), "renewal": seconds_of_renewal()}))
