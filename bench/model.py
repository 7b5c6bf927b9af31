"""What the rooms of the bench hand to each other: measures, figures, running peers, workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

Figures = dict[str, float]
"""Measure name → the number that one turn of a workload gave."""


class UnavailableError(Exception):
    """A peer or a driver cannot be had on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Unit:
    """How a measure is written: multiply by `factor`, then format, then append `symbol`."""

    symbol: str
    factor: float
    digits: int
    better: str = "lower"

    def text(self, value: float) -> str:
        return f"{value * self.factor:,.{self.digits}f} {self.symbol}".rstrip()


MICROSECONDS = Unit("µs", 1e6, 0)
MILLISECONDS = Unit("ms", 1e3, 1)
KILOBYTES = Unit("kB", 1e-3, 1)
MEGABYTES = Unit("MB", 1e-6, 1)
MEGABYTES_PER_SECOND = Unit("MB/s", 1e-6, 0, better="higher")
TIMES = Unit("×", 1, 2)
PER_SECOND = Unit("/s", 1, 0, better="higher")


@dataclass(frozen=True)
class Measure:
    """A quantity that a workload yields for each peer; `title` is how the table calls it."""

    name: str
    title: str
    unit: Unit


@dataclass(frozen=True)
class Scale:
    """How much work a run does. Counts are records unless they say otherwise."""

    rounds: int
    bulk_bytes: Mapping[int, int]
    """Record size → bytes of values that one bulk turn produces."""
    consume_passes: int
    latencies: int
    round_trips: int
    connections: int
    partitions: int
    groups: int
    stored_bytes: int
    transactions: int = 1000
    """Transactions of one record that a turn makes, one after the other."""
    open_transactions: int = 5000
    aborted_transactions: int = 10_000
    spark_records: int = 1_500_000
    spark_batches: int = 12
    """Micro-batches of a turn, the first of which does not count."""
    audit_records: int = 10_000_000
    """Records that were appended, and as many that were delivered."""
    shared_records: int = 500_000
    """Records that the members of a share group consume."""
    crowd_connections: int = 10_000
    crowd_groups: int = 100_000


FULL = Scale(
    5, {100: 100_000_000, 1024: 256_000_000}, 3, 3000, 5000, 2000, 10_000, 1000, 256_000_000
)
QUICK = Scale(
    2,
    {100: 20_000_000, 1024: 50_000_000},
    *(3, 600, 1000, 2000, 10_000, 1000, 64_000_000),
    transactions=200,
    shared_records=100_000,
    spark_records=300_000,
    spark_batches=6,
    audit_records=1_000_000,
)


@dataclass(frozen=True)
class Running:
    """A peer that answers. `start_s` runs from the start of its process to its first Metadata."""

    peer: Peer
    bootstrap_servers: str
    pids: tuple[int, ...]
    start_s: float

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first broker."""
        host, port = self.bootstrap_servers.split(",")[0].rsplit(":", 1)
        return host, int(port)


class Peer(Protocol):
    """A program that answers as a Kafka cluster."""

    name: str
    title: str

    def prepare(self) -> None:
        """Build or fetch what it needs. Raises UnavailableError."""

    def start(self) -> AbstractContextManager[Running]:
        """Start it afresh; leaving the context ends it. Raises UnavailableError."""

    def create_topic(self, running: Running, topic: str, partitions: int = 1) -> None: ...

    def create_topics(self, running: Running, topics: Sequence[str], partitions: int) -> float:
        """Create several topics by as few requests as may be; seconds until they were answered."""

    def delete_topic(self, running: Running, topic: str) -> None: ...


class Workload(Protocol):
    """One kind of load. `run` is one turn on one peer."""

    name: str
    measures: tuple[Measure, ...]
    fresh: bool
    """Whether each turn has a peer started for it; otherwise all turns share one running peer."""
    excluded: Mapping[str, str]
    """Peers that cannot take this load → why."""

    def prepare(self) -> None:
        """Build the drivers it needs. Raises UnavailableError."""

    def run(self, running: Running, scale: Scale) -> Figures: ...
