"""Counters of a running server as plain integers, which `/metrics` reads."""

from __future__ import annotations

from collections import Counter


class Stats:
    """The totals of one cluster's listeners since the start."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_closed",
        "connections_opened",
        "failed_authentications",
        "limits_exceeded",
        "protocol_errors",
        "requests",
    )

    def __init__(self, limits_exceeded: Counter[str]) -> None:
        """`limits_exceeded` is the cluster's count, to which the listeners add."""
        self.connections_opened = 0
        self.connections_closed = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.protocol_errors = 0
        self.failed_authentications = 0
        self.limits_exceeded = limits_exceeded
        self.requests: dict[int, int] = {}  # API key -> requests answered

    @property
    def connections_open(self) -> int:
        return self.connections_opened - self.connections_closed

    def exceeded(self, limit: str) -> None:
        """Count a connection that is closed because its client exceeded the config `limit`."""
        self.limits_exceeded[limit] += 1
