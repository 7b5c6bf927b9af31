"""A snapshot as Prometheus text (exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from mockbroker.admin.view import Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PREFIX = "mockbroker_"

Number = int | float


class Metric(NamedTuple):
    """One family: a number, or one number for each value of a label."""

    name: str
    kind: str
    help: str
    read: Callable[[Snapshot], Number | Mapping[str, Number]]
    label: str = ""


METRICS = (
    Metric("uptime_seconds", "gauge", "Time since the brokers began to listen.",
           lambda s: s.uptime_ms / 1000),
    Metric("brokers", "gauge", "Brokers in the cluster.", lambda s: s.brokers),
    Metric("topics", "gauge", "Topics, internal ones included.", lambda s: s.topics),
    Metric("partitions", "gauge", "Partitions, internal ones included.", lambda s: s.partitions),
    Metric("records_appended_total", "counter", "Records that partition logs took in.",
           lambda s: s.records_appended),
    Metric("connections", "gauge", "Client connections open now.", lambda s: s.connections_open),
    Metric("connections_opened_total", "counter", "Client connections accepted.",
           lambda s: s.connections_opened),
    Metric("requests_total", "counter", "Requests answered.", lambda s: s.requests, "api"),
    Metric("received_bytes_total", "counter", "Bytes read from clients.", lambda s: s.bytes_in),
    Metric("sent_bytes_total", "counter", "Bytes written to clients.", lambda s: s.bytes_out),
    Metric("protocol_errors_total", "counter", "Connections closed because of bad bytes.",
           lambda s: s.protocol_errors),
    Metric("failed_authentications_total", "counter", "Connections closed for want of proof.",
           lambda s: s.failed_authentications),
    Metric("throttled_total", "counter", "Answers that told a client to wait.",
           lambda s: s.throttled, "quota"),
    Metric("throttle_seconds_total", "counter", "How long they told clients to wait.",
           lambda s: {quota: ms / 1000 for quota, ms in s.throttled_ms.items()}, "quota"),
    Metric("groups", "gauge", "Consumer groups.", lambda s: s.groups, "state"),
)  # fmt: skip


def render(snapshot: Snapshot) -> str:
    return "".join(_family(metric, snapshot) for metric in METRICS)


def _family(metric: Metric, snapshot: Snapshot) -> str:
    name = PREFIX + metric.name
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
    lines += (f"{name}{labels} {value}" for labels, value in _samples(metric, snapshot))
    return "\n".join(lines) + "\n"


def _samples(metric: Metric, snapshot: Snapshot) -> Iterator[tuple[str, Number]]:
    found = metric.read(snapshot)
    if isinstance(found, Mapping):
        for value in sorted(found):
            yield f'{{{metric.label}="{_escape(value)}"}}', found[value]
    else:
        yield "", found


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
