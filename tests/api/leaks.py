"""What clusters that come and go leave in this process: counted by a process of its own."""

from __future__ import annotations

import gc
import json
import sys
import threading
import urllib.request
from pathlib import Path
from typing import NamedTuple

from mockbroker import Cluster
from mockbroker.client.client import Client

DESCRIPTORS = Path("/proc/self/fd")
WARM_UP = 5
# Every so many clusters have an admin API, whose server has a thread of its own.
WITH_ADMIN = 20


class Held(NamedTuple):
    """What the process holds."""

    objects: int
    descriptors: int
    threads: int


def held() -> Held:
    for _ in range(3):
        gc.collect()
    return Held(len(gc.get_objects()), len(list(DESCRIPTORS.iterdir())), threading.active_count())


def use(kafka: Cluster, number: int) -> None:
    """Records, a group's coordinator, a rule, and now and then the admin API."""
    kafka.faults.add(match={"api": "Produce"}, when={"times": 1}, do={"delay": "1ms"})
    with Client(kafka.bootstrap_servers) as client:
        client.produce("t", ["a"])
        client.coordinator("g")
    if number % WITH_ADMIN == 0:
        with urllib.request.urlopen(f"{kafka.admin_url}/healthz") as answer:
            assert answer.status == 200


def come_and_go(count: int) -> None:
    for number in range(count):
        with Cluster(brokers=2, topics={"t": 2}) as kafka:
            use(kafka, number)


def renewed(count: int) -> None:
    """As the fixtures do: one thread serves one cluster after another."""
    with Cluster(brokers=2, topics={"t": 2}) as kafka:
        for number in range(count):
            use(kafka, number)
            kafka.renew()


WAYS = {"come_and_go": come_and_go, "renewed": renewed}


def main(way: str, count: str) -> None:
    """Print what is held before and after so many clusters."""
    WAYS[way](WARM_UP)
    before = held()
    WAYS[way](int(count))
    print(json.dumps([before, held()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
