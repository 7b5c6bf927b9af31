"""How soon a peer is there, and how much memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from bench import process
from bench.drivers import LIBRDKAFKA
from bench.model import MEGABYTES, MILLISECONDS, TIMES, Figures, Measure, Running, Scale
from bench.workloads.support import fresh_topic

RECORD_BYTES = 1024


class Start:
    """From the start of the process to the first answer to Metadata."""

    name = "start"
    fresh = True
    excluded: Mapping[str, str] = {}
    measures: tuple[Measure, ...] = (Measure("start", "start to first Metadata", MILLISECONDS),)

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        return {"start": running.start_s}


class SecondCluster:
    """A cluster of the fixtures in a process that has already had one, to its first Metadata."""

    name = "second-cluster"
    fresh = True
    excluded: Mapping[str, str] = dict.fromkeys(
        ("real", "kfake", "librdkafka-mock"), "runs in a process of its own"
    )
    measures: tuple[Measure, ...] = (
        Measure("second-cluster", "second cluster in the same process", MILLISECONDS),
        Measure("renewal", "renewal of a cluster", MILLISECONDS),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        figures = _figures_of("bench.workloads.second_cluster")
        return {"second-cluster": figures["seconds"], "renewal": figures["renewal"]}


class PassingWeek:
    """How long a cluster of the fixtures takes for the seven days after which records expire."""

    name = "retention"
    fresh = True
    excluded: Mapping[str, str] = SecondCluster.excluded
    measures: tuple[Measure, ...] = (
        Measure("retention-week", "a week's retention in virtual time", MILLISECONDS),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        return {"retention-week": _seconds_of("bench.workloads.passing_week")}


class Snapshots:
    """A snapshot of a cluster of the fixtures with a restore of it, and a reset."""

    name = "snapshots"
    fresh = True
    excluded: Mapping[str, str] = dict.fromkeys(
        ("real", "kfake", "librdkafka-mock"), "runs in a process of its own"
    )
    measures: tuple[Measure, ...] = (
        Measure("snapshot-restore", "snapshot and restore of a small cluster", MILLISECONDS),
        Measure("reset", "reset of a small cluster", MILLISECONDS),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        figures = _figures_of("bench.workloads.snapshots")
        return {"snapshot-restore": figures["seconds"], "reset": figures["reset"]}


def _seconds_of(module: str) -> float:
    """What a module says that it took, run in a process of its own."""
    return _figures_of(module)["seconds"]


def _figures_of(module: str) -> dict[str, float]:
    """What a module prints, run in a process of its own."""
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


class IdleMemory:
    """Resident memory of a peer that has answered one Metadata."""

    name = "idle"
    fresh = True
    excluded: Mapping[str, str] = {}
    measures: tuple[Measure, ...] = (Measure("idle", "idle memory", MEGABYTES),)

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        return {"idle": process.resident_bytes(running.pids)}


class StoredBytes:
    """How much a fresh peer grows while it takes 1 KiB records, per byte of their values."""

    name = "stored"
    fresh = True
    excluded: Mapping[str, str] = {
        "real": "stores in the page cache",
        "librdkafka-mock": "keeps only the newest 5 MB of a partition",
    }
    measures: tuple[Measure, ...] = (Measure("stored", "memory per stored payload byte", TIMES),)

    def prepare(self) -> None:
        LIBRDKAFKA.prepare()

    def run(self, running: Running, scale: Scale) -> Figures:
        count = scale.stored_bytes // RECORD_BYTES
        with fresh_topic(running) as topic:
            before = process.resident_bytes(running.pids)
            LIBRDKAFKA.produce(running.bootstrap_servers, topic, count, RECORD_BYTES)
            grown = process.resident_bytes(running.pids) - before
        return {"stored": grown / (count * RECORD_BYTES)}
