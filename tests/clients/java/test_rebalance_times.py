"""How long rebalances take, as the client measures it and as the journal tells it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from mockbroker import Cluster
from tests.clients.java.steps import Peer, Steps
from tests.support.tour import Tour
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

REBALANCES = 6
AGREEMENT_MS = 50


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1, topics={"t": 2}) as cluster:
        yield cluster


@pytest.fixture
def java(tour: Tour, kafka: Cluster) -> Iterator[Steps]:
    steps = Steps(tour, Peer("mockbroker", kafka.bootstrap_servers, 1))
    yield steps
    steps.close_all()


@pytest.mark.covers("S222")
def test_the_listeners_time_of_a_rebalance_is_that_of_the_groups_states(
    java: Steps, kafka: Cluster
) -> None:
    """From revoked to assigned in the client, from PreparingRebalance to Stable in the journal: the
    first holds the second, and most are as good as equal. On a loaded machine some are not, so the
    nearest of several counts, and the totals agree as far as the journal bounds the client's.
    """
    consumer = java.consumer("g")
    java("subscribe", consumer, topics=["t"])
    java.settle(consumer, partitions=2)
    for number in range(REBALANCES):
        java("enforceRebalance", consumer)

        def assigned(wanted: int = number + 2) -> bool:
            java.poll(consumer, 1, timeout_ms=20)
            return [kind for kind, _ in java("times", consumer)].count("assigned") >= wanted

        wait_until(assigned, what="the next assignment")

    times = java("times", consumer)
    client_ms = [
        (begun, ended)
        for (was, begun), (kind, ended) in pairwise(times)
        if (was, kind) == ("revoked", "assigned")
    ]
    moved = kafka.journal.events(kind="group", group="g")
    broker_ms, begun_ms = [], 0.0
    for each in moved:
        if each.state == "PreparingRebalance":
            begun_ms = each.real_ns / 1e6
        elif each.state == "Stable":
            broker_ms.append((begun_ms, each.real_ns / 1e6))
    broker_ms = broker_ms[-REBALANCES:]
    assert len(client_ms) == len(broker_ms) == REBALANCES
    differences = []
    for (left, right), (low, high) in zip(client_ms, broker_ms, strict=True):
        assert left - 1 <= low <= high <= right + 1  # the client's clock counts whole ms
        differences.append((right - left) - (high - low))
    assert min(differences) <= AGREEMENT_MS
    total_client_ms = sum(right - left for left, right in client_ms)
    assert total_client_ms + 2 * REBALANCES >= sum(high - low for low, high in broker_ms)
