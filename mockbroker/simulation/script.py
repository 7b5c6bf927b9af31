"""The script of a simulated client: a generator of requests and pauses.

A *script* yields a `Call` and is sent the answer, or yields a `Sleep` and is sent None. It reads no
clock and opens no connection: a *driver* calls handlers directly or over streams. The same client
therefore runs in both modes.

A client has one connection to each broker. Its calls arrive in order, and one is in flight at a
time. After a timeout a call may still take effect; the connection is closed, as by Kafka's clients.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any, NamedTuple, Protocol, TypeAlias

from mockbroker_protocol import ApiKey

REQUEST_TIMEOUT_MS = 30_000  # `request.timeout.ms` of Kafka's clients


class Call(NamedTuple):
    """A request to one broker. The script is sent the response struct, or None without a response
    (Produce with acks=0).
    """

    node_id: int
    api_key: ApiKey
    version: int
    request: Any  # the request's struct, of `mockbroker_protocol.messages`
    timeout_ms: int = REQUEST_TIMEOUT_MS  # how long the client waits for the answer


class Sleep(NamedTuple):
    """A pause on the cluster's clock."""

    ms: int


class Disconnected(Exception):  # noqa: N818 - it names what happened
    """The broker does not exist or has closed the connection; the request may have taken effect."""


class RequestTimedOut(Exception):  # noqa: N818
    """No answer within the call's `timeout_ms`; the request may still take effect."""


Script: TypeAlias = "Generator[Call | Sleep, Any, None]"
"""Yields calls and sleeps; `Disconnected` and `RequestTimedOut` are thrown into it after a call."""


class ScriptedClient(Protocol):
    """One simulated client."""

    name: str  # unique within a simulation
    client_id: str  # of its requests

    def run(self, rng: random.Random) -> Script:
        """The script of the client. All its random choices come from `rng`."""
        ...
