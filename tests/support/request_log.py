"""What clients sent and were told, as a cluster saw it: the `trace` callback with a memory.

    log = RequestLog()
    with Cluster(trace=log) as kafka:
        ...
        assert [each.request.acks for each in log.of(ApiKey.PRODUCE)] == [-1]

An *exchange* is one request with its answer. Exchanges are in the order of their answers, so a
Fetch that waits for data stands behind what was answered meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

from mockbroker.handlers.base import RequestContext
from mockbroker_protocol import ApiKey

WAIT_TIMEOUT_S = 20.0


class Exchange(NamedTuple):
    """One request and its answer; times are those of `time.perf_counter_ns`."""

    node_id: int
    connection: int
    client_id: str
    software: str  # name and version, as ApiVersions told them
    api: ApiKey
    version: int
    request: Any
    response: Any
    arrived_ns: int
    answered_ns: int

    @property
    def waited_ms(self) -> float:
        """How long the broker took to answer."""
        return (self.answered_ns - self.arrived_ns) / 1e6


class RequestLog:
    """Every exchange of a cluster. Filled by the cluster's thread, read by the test's."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []
        self._changed = threading.Condition()
        self._begin_ns = 0

    def __call__(
        self, context: RequestContext, request: object, response: object, elapsed_ns: int
    ) -> None:
        now_ns = perf_counter_ns()
        peer = context.connection
        exchange = Exchange(
            node_id=context.broker.node_id,
            connection=peer.id,
            client_id=context.client_id,
            software=f"{peer.software_name} {peer.software_version}",
            api=ApiKey(context.header.api_key),
            version=context.api_version,
            request=request,
            response=response,
            arrived_ns=now_ns - elapsed_ns,
            answered_ns=now_ns,
        )
        with self._changed:
            if exchange.arrived_ns >= self._begin_ns:
                self._exchanges.append(exchange)
                self._changed.notify_all()

    def of(self, *apis: ApiKey, client_id: str | None = None) -> list[Exchange]:
        """The exchanges of these APIs (of all, without any), perhaps of one client only."""
        with self._changed:
            exchanges = list(self._exchanges)
        return [
            each
            for each in exchanges
            if (not apis or each.api in apis) and client_id in (None, each.client_id)
        ]

    def versions(self, client_id: str | None = None) -> set[tuple[str, int]]:
        """Which versions of which APIs were used: `{("FETCH", 17), …}`."""
        return {(each.api.name, each.version) for each in self.of(client_id=client_id)}

    def clear(self) -> None:
        """Forget everything: what counts begins now. Requests that wait already never count."""
        with self._changed:
            self._exchanges.clear()
            self._begin_ns = perf_counter_ns()

    def wait_for(
        self,
        api: ApiKey,
        wanted: Callable[[Exchange], bool] = lambda _: True,
        *,
        count: int = 1,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> list[Exchange]:
        """Wait until `count` exchanges of `api` are as wanted, and return all that are.

        Raises AssertionError when there are fewer after `timeout_s`.
        """
        found: list[Exchange] = []

        def enough() -> bool:
            found[:] = [each for each in self._exchanges if each.api == api and wanted(each)]
            return len(found) >= count

        with self._changed:
            if not self._changed.wait_for(enough, timeout_s):
                seen = ", ".join(each.api.name for each in self._exchanges[-30:])
                raise AssertionError(
                    f"{len(found)} of {count} wanted {api.name} came within {timeout_s:.0f} s; "
                    f"the last requests were {seen or 'none'}"
                )
        return found
