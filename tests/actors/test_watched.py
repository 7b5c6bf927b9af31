"""The plain way of a request: one look at `cluster.faults`, and nothing else of faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mockbroker.client import Client
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.faults.engine import FaultEngine
from mockbroker_fixtures import Cluster


class _Counting(CoreCluster):
    """A cluster that counts how often somebody looks at `faults`."""

    looks = 0

    @property
    def faults(self) -> FaultEngine | None:  # type: ignore[override]
        _Counting.looks += 1
        return None


def test_without_rules_a_request_costs_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests and connections, each one; the engine is never asked."""
    asked: list[object] = []
    monkeypatch.setattr(FaultEngine, "ask", lambda *_: asked.append("request"))
    monkeypatch.setattr(FaultEngine, "ask_at_accept", lambda *_: asked.append("connection"))
    with Cluster(brokers=1, topics={"t": 1}) as kafka:

        def count(cluster: CoreCluster) -> None:
            del cluster.__dict__["faults"]
            cluster.__class__ = _Counting

        kafka.call(count)
        _Counting.looks = 0
        with Client(kafka.bootstrap_servers) as client:
            client.metadata()
            client.metadata()
        server = kafka.server
        requests = kafka.call(lambda _: sum(server.stats.requests.values()))
        connections = kafka.call(lambda _: server.stats.connections_opened)
        looks = _Counting.looks
    assert requests >= 3
    assert looks == requests + connections
    assert asked == []


def test_without_rules_nothing_of_faults_is_imported() -> None:
    code = (
        "import sys\n"
        "from mockbroker_fixtures import Cluster\n"
        "with Cluster(brokers=1, topics={'t': 1}): pass\n"
        "found = [m for m in sys.modules if 'faults' in m or 'watched' in m or 'faulty' in m]\n"
        "assert found == [], found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
