"""Metrics as Prometheus text (exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mockbroker.admin.target import ClusterMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PREFIX = "mockbroker_"

Number = int | float


class Metric(NamedTuple):
    """One family: a number, or one number for each value of a label."""

    name: str
    kind: str
    help: str
    read: Callable[[ClusterMetrics], Number | Mapping[str, Number]]
    label: str = ""


METRICS = (
    Metric("uptime_seconds", "gauge", "Time since the brokers began to listen.",
           lambda s: s.uptime_ms / 1000),
    Metric("brokers", "gauge", "Brokers in the cluster.", lambda s: s.brokers),
    Metric("topics", "gauge", "Topics, internal ones included.", lambda s: s.topics),
    Metric("partitions", "gauge", "Partitions, internal ones included.", lambda s: s.partitions),
    Metric("records_appended_total", "counter", "Records appended to partitions.",
           lambda s: s.records_appended),
    Metric("connections", "gauge", "Client connections open now.", lambda s: s.connections_open),
    Metric("connections_opened_total", "counter", "Client connections accepted.",
           lambda s: s.connections_opened),
    Metric("requests_total", "counter", "Answered requests.", lambda s: s.requests, "api"),
    Metric("received_bytes_total", "counter", "Bytes read from clients.", lambda s: s.bytes_in),
    Metric("sent_bytes_total", "counter", "Bytes written to clients.", lambda s: s.bytes_out),
    Metric("protocol_errors_total", "counter", "Connections closed for malformed requests.",
           lambda s: s.protocol_errors),
    Metric("limits_exceeded_total", "counter",
           "Connections, requests and batches refused, and waits, for a protective limit.",
           lambda s: s.limits_exceeded, "limit"),
    Metric("failed_authentications_total", "counter", "Failed authentications.",
           lambda s: s.failed_authentications),
    Metric("throttled_total", "counter", "Throttled responses.",
           lambda s: s.throttled, "quota"),
    Metric("throttle_seconds_total", "counter", "Sum of the throttle times.",
           lambda s: {quota: ms / 1000 for quota, ms in s.throttled_ms.items()}, "quota"),
    Metric("admin_responses_total", "counter", "Responses of the admin server.",
           lambda s: s.admin_responses, "status"),
    Metric("groups", "gauge", "Consumer groups.", lambda s: s.groups, "state"),
)  # fmt: skip


def render(metrics: ClusterMetrics) -> str:
    return "".join(_family(metric, metric.read(metrics)) for metric in METRICS)


def _family(metric: Metric, found: Number | Mapping[str, Number]) -> str:
    name = PREFIX + metric.name
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
    if isinstance(found, Mapping):
        lines += (
            f'{name}{{{metric.label}="{_escape(value)}"}} {found[value]}' for value in sorted(found)
        )
    else:
        lines.append(f"{name} {found}")
    return "\n".join(lines) + "\n"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
