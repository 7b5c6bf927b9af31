"""Clusters that come and go in one process leave nothing there."""

from __future__ import annotations

import gc
import sys
import threading
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

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


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
@pytest.mark.parametrize("way", [come_and_go, renewed])
@pytest.mark.parametrize("count", [pytest.param(50), pytest.param(150, marks=pytest.mark.slow)])
def test_clusters_leave_no_descriptor_no_thread_and_no_object(way, count):
    """Less than one object for two clusters: caches of the process may grow a little."""
    way(WARM_UP)
    use_up = held()
    way(count)
    left = held()
    # Fewer, where something of an earlier test in this process ended meanwhile.
    assert left.descriptors <= use_up.descriptors
    assert left.threads <= use_up.threads
    assert left.objects - use_up.objects < count / 2
