"""What something costs a producer that waits for each acknowledgement: pairs of blocks, with and
without it, in an order that alternates, so that both are measured in the same minute.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from bench.raw import RawConnection, request
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

BLOCKS, QUICK_BLOCKS = 60, 20
ROUND_TRIPS = 200  # of each block
RESAMPLES = 2000
TOPIC = "orders"
END_TIMEOUT_S = 30.0

Block = Callable[[], float]
"""One block: the seconds of a round trip in it."""


class Child(NamedTuple):
    """A program that serves: what it is told, and what it says."""

    pid: int
    told: IO[str]
    said: IO[str]


class Cost(NamedTuple):
    """Seconds of a round trip, their ratio, and the 95 % interval of that."""

    without_s: float
    with_s: float
    ratio: float
    low: float
    high: float


@contextmanager
def child(module: str) -> Iterator[Child]:
    """`python -m module serve`; it ends when its standard input does."""
    with subprocess.Popen(
        [sys.executable, "-m", module, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Child(process.pid, process.stdin, process.stdout)
        process.stdin.close()
        process.wait(END_TIMEOUT_S)


def compare(blocks: int, without: Block, with_it: Block) -> Cost:
    """The cost of what `with_it` has and `without` has not."""
    with_it(), without()  # everything is imported and connected
    pairs: list[tuple[float, float]] = []
    for number in range(blocks):
        if number % 2:
            costly, plain = with_it(), without()
        else:
            plain, costly = without(), with_it()
        pairs.append((plain, costly))
    ratios = [costly / plain for plain, costly in pairs]
    return Cost(
        statistics.median(plain for plain, _ in pairs),
        statistics.median(costly for _, costly in pairs),
        statistics.median(ratios),
        *interval(ratios),
    )


def interval(ratios: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by resampling."""
    chance = random.Random(1)
    medians = sorted(
        statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)
    )
    return medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def produce_frame() -> bytes:
    """A Produce of one record with acks=all."""
    records = build_batch([Record(timestamp=1, value=b"x" * 100)])
    message = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(0, records)])
        ],
    )
    return request(ApiKey.PRODUCE, 9, message)


def seconds_of_a_round_trip(connection: RawConnection) -> float:
    """The median of one block of records with acks=all."""
    frame = produce_frame()
    times = []
    for _ in range(ROUND_TRIPS):
        begun = time.perf_counter()
        connection.round_trip(frame)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`."""
    host, port = text.strip().rsplit(":", 1)
    return host, int(port)
