"""What a hundred rules that match nothing cost a producer that waits for each acknowledgement.

A cluster in a child process is told to put the rules in force and to take them away again, block by
block, so that both are measured on the same machine in the same minute. Prints the seconds of a
round trip without and with them, and the ratio with its 95 % interval over the pairs of blocks.

    python -m bench.workloads.idle_rules [BLOCKS]
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

from bench.raw import RawConnection, request
from mockbroker_fixtures import Cluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

RULES = 100
BLOCKS = 60
ROUND_TRIPS = 200  # of each block
RESAMPLES = 2000
TOPIC = "orders"

# Rules of every kind that a Produce has to be looked at for.
MATCHES: tuple[dict[str, object], ...] = (
    {"topic": "other-{}"},
    {"client_id": "app-{}-*"},
    {"transactional_id": "tx-{}"},
    {"broker": [7, 8]},
    {"topic": "/^other-{}/"},
    {"group": "group-{}"},
)


def plan() -> dict[str, object]:
    """A hundred rules, none of which ever fires here."""
    rules = []
    for number in range(RULES):
        chosen = MATCHES[number % len(MATCHES)]
        match = {k: v.format(number) if isinstance(v, str) else v for k, v in chosen.items()}
        rules.append({"match": {"api": "Produce", **match}, "do": {"drop_reply": {}}})
    return {"name": "idle", "rules": rules}


def serve() -> None:
    """The child: a cluster whose rules come and go with the lines of its standard input."""
    with Cluster(brokers=1, topics={TOPIC: 1}) as kafka:
        print(kafka.bootstrap_servers, flush=True)
        for line in sys.stdin:
            if line.strip() == "on":
                kafka.faults.add(plan())
            else:
                kafka.faults.clear()
            print("ok", flush=True)


def seconds_of_a_round_trip(connection: RawConnection) -> float:
    """The median of one block."""
    records = build_batch([Record(timestamp=1, value=b"x" * 100)])
    message = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(0, records)])
        ],
    )
    frame = request(ApiKey.PRODUCE, 9, message)
    times = []
    for _ in range(ROUND_TRIPS):
        begun = time.perf_counter()
        connection.round_trip(frame)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


class Cost(NamedTuple):
    """Seconds of a round trip, their ratio, and the 95 % interval of that."""

    without_s: float
    with_s: float
    ratio: float
    low: float
    high: float


def measure(blocks: int) -> Cost:
    """Pairs of blocks, without and with the rules, in an order that alternates."""
    pairs: list[tuple[float, float]] = []
    with subprocess.Popen(
        [sys.executable, "-m", "bench.workloads.idle_rules", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def turn(word: str) -> float:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(f"{word}\n")
            child.stdin.flush()
            child.stdout.readline()
            return seconds_of_a_round_trip(connection)

        host, port = child.stdout.readline().strip().rsplit(":", 1)
        with RawConnection((host, int(port))) as connection:
            for word in ("on", "off"):  # everything is imported and connected
                turn(word)
            for number in range(blocks):
                if number % 2:
                    with_rules, without = turn("on"), turn("off")
                else:
                    without, with_rules = turn("off"), turn("on")
                    turn("off")
                pairs.append((without, with_rules))
        child.stdin.close()
        child.wait(30)
    ratios = [with_rules / without for without, with_rules in pairs]
    return Cost(
        statistics.median(without for without, _ in pairs),
        statistics.median(with_rules for _, with_rules in pairs),
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


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        cost = measure(int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS)
        print(json.dumps(cost._asdict()))
