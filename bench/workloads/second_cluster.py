"""Start two clusters after each other in this process and print the time of the second."""

from __future__ import annotations

import json
import time

from bench import raw
from mockbroker import Cluster


def seconds_to_metadata() -> float:
    begun = time.perf_counter()
    with Cluster(brokers=3) as kafka:
        host, port = kafka.bootstrap_servers.split(",")[0].rsplit(":", 1)
        if raw.brokers_seen((host, int(port))) == 0:
            raise RuntimeError("the cluster does not answer")
        return time.perf_counter() - begun


if __name__ == "__main__":
    seconds_to_metadata()
    print(json.dumps({"seconds": seconds_to_metadata()}))
