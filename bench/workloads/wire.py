"""Raw requests on sockets of our own: round trips, many connections, large answers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

from bench import process, raw
from bench.model import (
    KILOBYTES,
    MICROSECONDS,
    MILLISECONDS,
    Figures,
    Measure,
    Running,
    Scale,
)
from bench.placement import separate_cores
from bench.workloads.support import percentile

ANSWER_BYTES = 4096  # an answer to ApiVersions fits
METADATA_TURNS = 20
TOPIC_PARTITIONS = 100
PARTITION_BYTES_MIN = 26  # error, index, leader, epoch, one replica, one in sync, none offline


class ApiVersions:
    """The smallest request there is, on one open connection."""

    name = "api-versions"
    fresh = False
    excluded: Mapping[str, str] = {}
    measures: tuple[Measure, ...] = (
        Measure("api-versions-p50", "ApiVersions round trip p50", MICROSECONDS),
        Measure("api-versions-p99", "ApiVersions round trip p99", MICROSECONDS),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        with separate_cores(running.pids), raw.RawConnection(running.address) as connection:
            _times(connection, raw.api_versions(), scale.round_trips // 10)
            times = _times(connection, raw.api_versions(), scale.round_trips)
        p50, p99 = (measure.name for measure in self.measures)
        return {p50: percentile(times, 50), p99: percentile(times, 99)}


class Connections:
    """Open many connections and ask each for ApiVersions; they all stay open to the end."""

    name = "connections"
    fresh = True
    excluded: Mapping[str, str] = {}
    measures: tuple[Measure, ...] = (
        Measure("connections-time", "2,000 connections with a request each: time", MILLISECONDS),
        Measure("connections-cpu", "2,000 connections with a request each: CPU", MILLISECONDS),
        Measure("connections-memory", "2,000 connections: memory of each", KILOBYTES),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        with contextlib.ExitStack() as stack:
            before = process.resident_bytes(running.pids)
            cpu_s = process.cpu_seconds(running.pids)
            begun = time.perf_counter()
            for _ in range(scale.connections):
                connection = raw.RawConnection(running.address, buffer_bytes=ANSWER_BYTES)
                stack.enter_context(connection)
                connection.round_trip(raw.api_versions())
            seconds = time.perf_counter() - begun
            cpu_s = process.cpu_seconds(running.pids) - cpu_s
            grown = process.resident_bytes(running.pids) - before
        return {
            "connections-time": seconds,
            "connections-cpu": cpu_s,
            "connections-memory": max(0, grown) / scale.connections,
        }


class FullMetadata:
    """Metadata of every topic of a cluster with many partitions."""

    name = "metadata"
    fresh = True
    excluded: Mapping[str, str] = {
        "real": "takes minutes to make the topics",
        "librdkafka-mock": "cannot be told how many partitions to make",
    }
    measures: tuple[Measure, ...] = (
        Measure("create", "create 10,000 partitions", MILLISECONDS),
        Measure("metadata-first", "full Metadata of 10,000 partitions, first", MILLISECONDS),
        Measure("metadata-p50", "full Metadata of 10,000 partitions p50", MILLISECONDS),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        with raw.RawConnection(running.address) as connection:
            connection.round_trip(raw.metadata_of_all_topics())  # codecs are made on first use
        count = scale.partitions // TOPIC_PARTITIONS
        topics = [f"bench-metadata-{number}" for number in range(count)]
        created = running.peer.create_topics(running, topics, TOPIC_PARTITIONS)
        with raw.RawConnection(running.address) as connection:
            request = raw.metadata_of_all_topics()
            begun = time.perf_counter()
            answer = connection.round_trip(request)
            first = time.perf_counter() - begun
            if len(answer) < scale.partitions * PARTITION_BYTES_MIN:
                raise RuntimeError(f"{len(answer)} bytes do not hold every partition")
            times = _times(connection, request, METADATA_TURNS)
        return {
            "create": created,
            "metadata-first": first,
            "metadata-p50": percentile(times, 50),
        }


def _times(connection: raw.RawConnection, request: bytes, count: int) -> list[float]:
    """Seconds of each of `count` round trips."""
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        connection.round_trip(request)
        times.append(time.perf_counter() - begun)
    return times
