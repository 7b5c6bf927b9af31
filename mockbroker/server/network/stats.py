"""Counters of a running server, plain integers: the broker's hot path adds, `/metrics` reads."""

from __future__ import annotations


class Stats:
    """What the listeners of one cluster have seen since it started."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_closed",
        "connections_opened",
        "failed_authentications",
        "protocol_errors",
        "requests",
    )

    def __init__(self) -> None:
        self.connections_opened = 0
        self.connections_closed = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.protocol_errors = 0
        self.failed_authentications = 0
        self.requests: dict[int, int] = {}  # API key -> requests answered

    @property
    def connections_open(self) -> int:
        return self.connections_opened - self.connections_closed
