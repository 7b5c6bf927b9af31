"""What a simulated client is: a script that asks brokers and sleeps, and nothing else.

A *script* is a generator. It yields a `Call` and is sent the answer, or yields a `Sleep` and is
sent None. It reads no clock and opens no connection: a *driver* does both for it, by calling
handlers directly or over streams. So the same client runs in either mode.

A client has one connection to each broker. Its calls arrive in the order in which it makes them,
and one of them is under way at a time. A call that the client stops waiting for may still take
effect; its connection is closed, as Kafka's clients do.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any, NamedTuple, Protocol, TypeAlias

from mockbroker_protocol import ApiKey

REQUEST_TIMEOUT_MS = 30_000  # `request.timeout.ms` of Kafka's clients


class Call(NamedTuple):
    """A request to one broker. The script is sent the response struct, or None where the broker
    answers nothing (Produce with acks=0).
    """

    node_id: int
    api_key: ApiKey
    version: int
    request: Any  # the request's struct, of `mockbroker_protocol.messages`
    timeout_ms: int = REQUEST_TIMEOUT_MS  # how long the client waits for the answer


class Sleep(NamedTuple):
    """Nothing, for some time of the cluster's clock."""

    ms: int


class Disconnected(Exception):  # noqa: N818 - it names what happened
    """The broker is not there, or has closed the connection: the request may have been carried
    out.
    """


class RequestTimedOut(Exception):  # noqa: N818
    """No answer came within the call's `timeout_ms`: the request may still be carried out."""


Script: TypeAlias = "Generator[Call | Sleep, Any, None]"
"""Yields calls and sleeps; `Disconnected` and `RequestTimedOut` are thrown in where it yielded a
call. A script that ends has nothing left to do.
"""


class Client(Protocol):
    """One simulated client."""

    name: str  # unique within a simulation
    client_id: str  # as its requests say

    def run(self, rng: random.Random) -> Script:
        """The client's life, from its first request on. All its choices come from `rng`."""
        ...
