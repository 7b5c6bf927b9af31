"""`python -m bench.trees COMMIT`: what a request costs now, as a ratio to what it cost at a commit.

Both trees serve at once, each in a process of its own, from the installed environment of this one.
Blocks of requests alternate between them, and the CPU time of each process is read before and after
a block: other work on the machine then falls on both alike. A ratio is the median over the rounds
of now / then of neighbouring blocks. 1.00 is the same cost, 1.03 is 3 % more.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench import process, raw
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mockbroker_protocol.records import Record, build_batch

ROOT = Path(__file__).parents[1]
PACKAGES = (".", "protocol", "fixtures")
TOPIC, GROUP = "bench", "g"
PREPARING_ATTEMPTS = 1000


class Served(NamedTuple):
    """A running tree: its process and one connection to it."""

    pid: int
    connection: raw.RawConnection


class Load(NamedTuple):
    """One kind of request: its frame, sent again and again."""

    name: str
    frame: bytes


@contextlib.contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """The files of a commit, in a directory that goes away. Raises SystemExit if there is none."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", commit],
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        raise SystemExit(f"no tree of {commit!r}: {archive.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory(prefix="mockbroker-tree-") as directory:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(directory, filter="data")
        yield Path(directory)


@contextlib.contextmanager
def serving(tree: Path) -> Iterator[Served]:
    """Serve a tree. One broker, one topic of one partition."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(tree / package) for package in PACKAGES)
    }
    command = [  # -P: not the packages of the working directory
        *(sys.executable, "-P", "-m", "mockbroker", "serve", "--brokers", "1", "--port", "0"),
        *("--admin-port", "0", "--topic", f"{TOPIC}:1"),
    ]
    with process.child(command, environment) as (child, output):
        line = process.wait_for_line(child, output, "ready ")
        words = dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
        host, port = words["bootstrap"].rsplit(":", 1)
        with raw.RawConnection((host, int(port))) as connection:
            yield Served(child.pid, connection)


def ask(connection: raw.RawConnection, api: ApiKey, version: int, message: object) -> Any:
    answer = connection.round_trip(raw.request(api, version, message))
    return raw.answer(api, version, answer)


def loads(connection: raw.RawConnection) -> list[Load]:
    """The requests of the hot path. Joins a group, and appends one batch, for what they need."""
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    for _ in range(PREPARING_ATTEMPTS):
        if not ask(connection, ApiKey.FIND_COORDINATOR, 4, find).coordinators[0].error_code:
            break
    protocols = [JoinGroupRequestProtocol("range", b"")]
    joining = JoinGroupRequest(GROUP, 300_000, 300_000, "", None, "consumer", protocols)
    given = ask(connection, ApiKey.JOIN_GROUP, 5, joining).member_id
    joining = JoinGroupRequest(GROUP, 300_000, 300_000, given, None, "consumer", protocols)
    joined = ask(connection, ApiKey.JOIN_GROUP, 5, joining)
    assert joined.error_code == 0, joined
    synced = SyncGroupRequest(
        GROUP,
        joined.generation_id,
        given,
        assignments=[SyncGroupRequestAssignment(given, b"")],
    )
    assert ask(connection, ApiKey.SYNC_GROUP, 3, synced).error_code == 0
    batch = build_batch([Record(0, 1, None, b"v" * 100)])
    produce = ProduceRequest(
        None, -1, 5_000, [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])]
    )
    fetch = FetchRequest(
        max_wait_ms=0,
        topics=[
            FetchTopic(
                TOPIC,
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)],
            )
        ],
    )
    commit = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=joined.generation_id,
        member_id=given,
        topics=[OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, 1)])],
    )
    messages: Mapping[str, tuple[ApiKey, int, object]] = {
        "Produce": (ApiKey.PRODUCE, 9, produce),
        "Fetch": (ApiKey.FETCH, 12, fetch),
        "ListOffsets": (
            ApiKey.LIST_OFFSETS,
            7,
            ListOffsetsRequest(-1, 0, [ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1, -1)])]),
        ),
        "OffsetCommit": (ApiKey.OFFSET_COMMIT, 8, commit),
        "OffsetFetch": (
            ApiKey.OFFSET_FETCH,
            7,
            OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic(TOPIC, [0])]),
        ),
        "Heartbeat": (
            ApiKey.HEARTBEAT,
            4,
            HeartbeatRequest(GROUP, joined.generation_id, given),
        ),
    }
    found = [Load("Metadata", raw.metadata_of_all_topics())]
    for name, (api, version, message) in messages.items():
        ask(connection, api, version, message)
        found.append(Load(name, raw.request(api, version, message)))
    return found


def cost_s(served: Served, load: Load, requests: int) -> float:
    """CPU seconds of the process for so many requests."""
    before = process.cpu_seconds([served.pid])
    for _ in range(requests):
        served.connection.round_trip(load.frame)
    return process.cpu_seconds([served.pid]) - before


def compare(then: Served, now: Served, rounds: int, requests: int) -> dict[str, list[float]]:
    """The ratios now / then of each round, by kind of request."""
    pairs = list(zip(loads(then.connection), loads(now.connection), strict=True))
    ratios: dict[str, list[float]] = {old.name: [] for old, _ in pairs}
    for number in range(rounds + 1):
        for old, new in pairs:
            order = [(then, old), (now, new)]
            if number % 2:
                order.reverse()
            costs = {served.pid: cost_s(served, load, requests) for served, load in order}
            if number:  # the first round warms up
                ratios[old.name].append(costs[now.pid] / costs[then.pid])
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench.trees", description="Compare what requests cost now and at a commit."
    )
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--requests", type=int, default=300, help="in each block")
    arguments = parser.parse_args()
    with (
        tree_of(arguments.commit) as tree,
        serving(tree) as then,
        serving(ROOT) as now,
    ):
        ratios = compare(then, now, arguments.rounds, arguments.requests)
    for name, found in ratios.items():
        low, middle, high = statistics.quantiles(found, n=4)
        print(f"{name:14} {middle:5.2f}   quartiles {low:.2f} to {high:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
