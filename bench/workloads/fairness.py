"""What an ordinary client notices of greedy ones, and what very many clients and groups take."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from bench import process, raw, swarm
from bench.model import (
    KILOBYTES,
    TIMES,
    Figures,
    Measure,
    Running,
    Scale,
    UnavailableError,
)
from bench.placement import separate_cores
from bench.workloads import flat, greedy
from bench.workloads.groups import alone, find_coordinators, play
from bench.workloads.support import percentile
from bench.workloads.wire import ANSWER_BYTES

TURNS = 5
"""The quiet and the greedy times of a kind are taken in turns, so that both have bad moments."""

GROUPS_AT_ONCE = 1000
DESCRIPTORS_LEFT = 100

TITLES = {
    "never-reading": "20 clients that never read",
    "dripping": "200 clients of a byte a second",
    "connecting": "a client that opens 2,000 connections anew",
    "flooding": "a client that floods",
    "session": "a fetch session of 3,000 partitions",
}


class Fairness:
    """An ordinary client's Metadata, Produce, ListOffsets and Fetch: their p99 beside greed.

    The time that the client or the peer waited for a core does not count. The machine takes it, and
    more of it from a process that is busy than from one that mostly waits. What is left of a wait
    that began before the request goes with it: a few figures are too small, p99s are not.
    """

    name = "fairness"
    fresh = True
    excluded: Mapping[str, str] = {
        "real": "takes minutes to make the topic",
        "kfake": "has many threads: what one request waits for a core is not told",
        "librdkafka-mock": "cannot be told how many partitions to make",
    }
    measures: tuple[Measure, ...] = tuple(
        Measure(f"fairness-{kind}", f"p99 beside {title}, against quiet", TIMES)
        for kind, title in TITLES.items()
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        running.peer.create_topics(running, [flat.TOPIC], 1)
        running.peer.create_topics(running, [greedy.TOPIC], greedy.PARTITIONS)
        figures: Figures = {}
        address = flat.leader(running.address)
        requests = flat.partition_requests()
        count = scale.round_trips // (TURNS * len(requests))
        at = flat.leader(running.address, greedy.TOPIC)
        with separate_cores(running.pids), raw.RawConnection(address) as connection:
            ordinary = Ordinary(connection, requests, running.pids[0])
            ordinary.times(count)
            for kind in greedy.KINDS:
                quiet: list[float] = []
                beside: list[float] = []
                for _ in range(TURNS):
                    ordinary.times(count)  # while the peer forgets those who have gone
                    quiet += ordinary.times(count)
                    with greed(kind, at):
                        beside += ordinary.times(count)
                figures[f"fairness-{kind}"] = percentile(beside, 99) / percentile(quiet, 99)
        return figures


class Ordinary:
    """A client that waits for each answer."""

    def __init__(self, connection: raw.RawConnection, requests: Sequence[bytes], pid: int) -> None:
        self._connection = connection
        self._requests = requests
        self._pids = (os.getpid(), pid)

    def times(self, count: int) -> list[float]:
        """Seconds of each round trip of `count` rounds of the requests, with cores at hand."""
        found = []
        for _ in range(count):
            for request in self._requests:
                before = sum(map(process.core_wait_s, self._pids))
                begun = time.perf_counter()
                self._connection.round_trip(request)
                took = time.perf_counter() - begun
                waited = sum(map(process.core_wait_s, self._pids)) - before
                found.append(max(0.0, took - waited))
        return found


@contextlib.contextmanager
def greed(kind: str, address: swarm.Address) -> Iterator[None]:
    """Greedy clients at their full. Raises RuntimeError if the peer ends them."""
    command = [sys.executable, "-m", "bench.workloads.greedy", kind, address[0], str(address[1])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            if child.stdout.readline() == "ready\n":
                yield
        finally:
            _, errors = child.communicate()
    if child.returncode:
        raise RuntimeError(f"{kind}: {(errors.strip().splitlines() or ['ended'])[-1]}")


class Crowd:
    """10,000 connections, and many groups with a member each and a committed offset."""

    name = "crowd"
    fresh = True
    excluded: Mapping[str, str] = {
        "real": "takes minutes",
        "librdkafka-mock": "knows neither these versions nor so many groups",
    }
    measures: tuple[Measure, ...] = (
        Measure("crowd-connections", "10,000 connections: memory of each", KILOBYTES),
        Measure("crowd-groups", "many groups: memory of each", KILOBYTES),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        running.peer.create_topics(running, [flat.TOPIC], 1)
        groups = [f"bench-crowd-{number}" for number in range(scale.crowd_groups)]
        _make(running.address, groups[:1])  # what the first group of a process takes
        begun = process.resident_bytes(running.pids)
        for start in range(1, len(groups), GROUPS_AT_ONCE):
            _make(running.address, groups[start : start + GROUPS_AT_ONCE])
        with_groups = process.resident_bytes(running.pids)
        connections = _connections_max(scale.crowd_connections)
        with contextlib.ExitStack() as stack:
            for _ in range(connections):
                each = raw.RawConnection(running.address, buffer_bytes=ANSWER_BYTES)
                stack.enter_context(each)
                each.round_trip(raw.api_versions())
            with_connections = process.resident_bytes(running.pids)
        return {
            "crowd-groups": max(0, with_groups - begun) / len(groups),
            "crowd-connections": max(0, with_connections - with_groups) / connections,
        }


def _make(address: swarm.Address, groups: Sequence[str]) -> None:
    """Join groups as their only members, and commit an offset in each."""
    coordinators = find_coordinators(address, groups)
    with contextlib.ExitStack() as stack:
        connections = {
            each: stack.enter_context(raw.RawConnection(each, raw.TIMEOUT_S))
            for each in set(coordinators.values())
        }
        for group in groups:
            connection = connections[coordinators[group]]
            joined = play(connection, alone(group))
            _, commit, _ = flat.group_requests(group, joined.generation_id, joined.member_id)
            connection.round_trip(commit)


def _connections_max(wanted: int) -> int:
    """How many connections there may be. Raises UnavailableError if that is too few."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - DESCRIPTORS_LEFT
    if limit < wanted:
        raise UnavailableError(f"`ulimit -n` leaves {limit} connections")
    return wanted
