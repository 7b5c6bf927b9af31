"""The pair of lingers: what the bench's table says of them."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from rich.console import Console

from bench import model, report
from bench.model import Peer, Running
from bench.run import run
from bench.workloads.linger import LINGER_MS, Linger
from mockbroker import Cluster

SMALL = dataclasses.replace(model.QUICK, rounds=1, latencies=50)


class InThisProcess:
    """A cluster of the fixtures as a peer."""

    name = title = "mockbroker"

    def prepare(self) -> None:
        pass

    @contextmanager
    def start(self) -> Iterator[Running]:
        with Cluster(brokers=1) as kafka:
            self.kafka = kafka
            yield Running(self, kafka.bootstrap_servers, (), 0.0)

    def create_topic(self, running: Running, topic: str, partitions: int = 1) -> None:
        self.kafka.topic(topic).create(partitions)

    def create_topics(self, running: Running, topics: Sequence[str], partitions: int) -> float:
        raise AssertionError

    def delete_topic(self, running: Running, topic: str) -> None:
        self.kafka.call(lambda cluster: cluster.delete_topic(topic))


@pytest.mark.covers("S121")
def test_both_lingers_stand_in_the_table_with_their_rate_and_their_latency() -> None:
    """Whoever waits for company is later by that. Rates are for a quiet machine to tell."""
    peers: list[Peer] = [InThisProcess()]
    results = run([Linger()], peers, SMALL, lambda _: None)
    assert results.failures == {}
    output = io.StringIO()
    report.print_table(results, Linger.measures, peers, Console(file=output, width=160))
    for linger_ms in LINGER_MS:
        assert f"linger.ms={linger_ms}, records" in output.getvalue()
        assert f"linger.ms={linger_ms}, latency p99" in output.getvalue()
        [rate] = results.values(f"linger-{linger_ms}-rate", "mockbroker")
        assert rate > 0
    [late] = results.values("linger-20-p99", "mockbroker")
    assert late >= 0.018
