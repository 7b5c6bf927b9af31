"""Schemathesis finds no answer that differs from the OpenAPI document."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from mockbroker import Cluster
from mockbroker.admin.v1.routes import ALL_ENDPOINTS
from tests.support.librdkafka import TIMEOUT_S

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
EXAMPLES = 5
RUN_S = 600  # each takes some seconds on a quiet machine

# A run for each group of operations, on a cluster of its own: what one does to the cluster is not
# to hide anything from the others. A stream never ends, so it has tests of its own.
EVERY_PHASE = "examples,coverage,fuzzing"
STEERING = "actions|held|faults|clock|snapshot|restore|reset|journal|verify"
GROUPS = {
    "looking": (f"^/v1/(?!{STEERING})", EVERY_PHASE),
    "one rule": ("^/v1/faults/", EVERY_PHASE),
    # The coverage phase has eight thousand combinations for a plan.
    "plans": ("^/v1/faults$", "examples,fuzzing"),
    "actions": ("^/v1/(actions|held)", EVERY_PHASE),
    "clock and snapshots": ("^/v1/(clock|snapshots?(/.*)?|restore|reset)$", EVERY_PHASE),
    "journal": ("^/v1/(journal(?!/stream)|verify)", EVERY_PHASE),
    "service": ("^/(openapi.json|healthz|metrics)?$", EVERY_PHASE),
}
NOT_EXAMINED = {"/v1/journal/stream"}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    """A cluster with something of everything to look at."""
    with Cluster(brokers=3, topics={"orders": 2}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        for number in range(3):
            producer.produce("orders", str(number), partition=0, headers={"number": b"\xff"})
        assert producer.flush(TIMEOUT_S) == 0
        cluster.group("billing").set_offsets({("orders", 0): 1})
        cluster.faults.add(name="standing", match={"api": "Produce"}, do={"hold": "before"})
        yield cluster


@pytest.mark.slow
@pytest.mark.timeout(2 * RUN_S)
@pytest.mark.parametrize("group", GROUPS)
def test_the_api_is_as_documented(kafka: Cluster, group: str, tmp_path: Path) -> None:
    """Every operation: examples, bounds of every field, and random data, valid and not."""
    paths, phases = GROUPS[group]
    command = [
        *(sys.executable, "-m", "schemathesis.cli"),
        *("--config-file", str(HERE / "schemathesis.toml")),
        *("run", f"{kafka.admin_url}/openapi.json", "--include-path-regex", paths),
        *("--phases", phases, "--max-examples", str(EXAMPLES), "--continue-on-failure"),
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,  # it leaves files about what it found
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_every_operation_is_examined() -> None:
    """By one group, and only by one."""
    for endpoint in ALL_ENDPOINTS:
        groups = [name for name, (paths, _) in GROUPS.items() if re.search(paths, endpoint.path)]
        assert len(groups) == (endpoint.path not in NOT_EXAMINED), endpoint.path
