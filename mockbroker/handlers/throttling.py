"""Client quotas: the throttle time of a response, and the time for which its connection is muted.

The response is sent at once with its throttle time. The connection is then not read for that time
(KIP-219). Each broker measures its own clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mockbroker.core.quotas.throttling import (
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    ClientIdentity,
    ThrottledError,
)
from mockbroker.handlers.base import NO_RESPONSE, EncodedResponse, Outcome
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec

if TYPE_CHECKING:
    from mockbroker.core.quotas.throttling import Throttling
    from mockbroker.handlers.base import RequestContext
    from mockbroker_protocol.messages.fetch import FetchResponse
    from mockbroker_protocol.messages.share_fetch import ShareFetchResponse

    FetchAnswer = FetchResponse | ShareFetchResponse

# Requests of brokers and for authentication: their handler time does not count.
FETCHES = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
EXEMPT = frozenset((ApiKey.WRITE_TXN_MARKERS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))


class RequestUsage:
    """The bytes of a request's frame and the ns of its handler, for a quota manager.

    `now_ns` reads the server's clock for measuring. The handler runs from `begin` to `end`, once
    for each slice.
    """

    __slots__ = ("_began_ns", "_now_ns", "_spent_ns", "size", "throttling")

    def __init__(self, throttling: Throttling, size: int, now_ns: Callable[[], int]) -> None:
        self.throttling = throttling
        self.size = size
        self._now_ns = now_ns
        self._began_ns: int | None = None
        self._spent_ns = 0

    def begin(self) -> None:
        """The handler begins, or goes on."""
        self._began_ns = self._now_ns()

    def end(self) -> None:
        """The handler returns."""
        self._spent_ns, self._began_ns = self.spent_ns, None

    @property
    def spent_ns(self) -> int:
        """The time of the handler until now."""
        if self._began_ns is None:
            return self._spent_ns
        return self._spent_ns + self._now_ns() - self._began_ns


def client_of(ctx: RequestContext) -> ClientIdentity:
    """The user and client id of a request, for quotas."""
    return ClientIdentity(ctx.connection.principal.partition(":")[2], ctx.client_id)


def record_and_throttle(
    ctx: RequestContext, response: Any, usage: RequestUsage
) -> tuple[object, int]:
    """Measure a request; returns the answer to send, and the ms for which to mute the connection.

    The handler may have set a throttle time already, for fetched bytes or for changes to topics.
    The longer one applies.
    """
    key = ctx.header.api_key
    if isinstance(response, Outcome) and response is not NO_RESPONSE:
        return response, 0
    throttling = usage.throttling
    now_ms = ctx.cluster.runtime.now_ms()
    client = client_of(ctx)
    broker_id = ctx.broker.node_id
    wait_ms, quota = (
        getattr(response, "throttle_time_ms", 0),
        FETCH if key in FETCHES else MUTATION,
    )
    if key == ApiKey.PRODUCE:
        wait_ms, quota = throttling.produced(broker_id, client, usage.size, now_ms), PRODUCE
    if response is not NO_RESPONSE and key not in EXEMPT:
        busy_ms = throttling.handled(broker_id, client, usage.spent_ns, now_ms)
        if busy_ms >= wait_ms:
            wait_ms, quota = busy_ms, REQUEST
    if wait_ms <= 0:
        return response, 0
    throttling.record_throttle(quota, wait_ms)
    answer: Any = response
    if key in FETCHES and answer.responses:
        answer = _without_records(ctx, throttling, client, answer)
    return _with_throttle_time(ctx, answer, wait_ms), wait_ms


def _without_records(
    ctx: RequestContext, throttling: Throttling, client: ClientIdentity, response: FetchAnswer
) -> FetchAnswer:
    """A Fetch that is throttled for its handler's time has no records; its bytes do not count."""
    if throttling.limits_fetches(client):
        size = _fetched_size(ctx, response)
        throttling.unrecord_fetch(ctx.broker.node_id, client, size, ctx.cluster.runtime.now_ms())
    return replace(response, responses=[], node_endpoints=[])


def _with_throttle_time(ctx: RequestContext, response: Any, wait_ms: int) -> object:
    """The answer with its throttle time, if its version has the field."""
    if isinstance(response, EncodedResponse):
        if response.throttle_time_ms == wait_ms:
            return response
        # These bytes are shared between connections.
        codec = response_codec(ctx.header.api_key, ctx.api_version)
        response = codec.decode(b"".join(response.parts))[0]
    if not hasattr(response, "throttle_time_ms"):
        return response
    return replace(response, throttle_time_ms=wait_ms)


def record_fetch(ctx: RequestContext, response: FetchAnswer) -> int:
    """Measure the bytes of a response to a consumer: its throttle time, or 0.

    A throttled response has no records (FetchContext.getThrottledResponse).
    """
    throttling = ctx.cluster.quotas.throttling
    if throttling is None:
        return 0
    client = client_of(ctx)
    if not throttling.limits_fetches(client):
        return 0
    size = _fetched_size(ctx, response)
    return throttling.fetched(ctx.broker.node_id, client, size, ctx.cluster.runtime.now_ms())


def _fetched_size(ctx: RequestContext, response: FetchAnswer) -> int:
    parts = response_codec(ctx.header.api_key, ctx.api_version).encode(response)
    return 4 + sum(len(part) for part in parts)


class MutationQuota:
    """The controller mutation quota of one request (KIP-599), in partitions.

    From version `strict_since` on, changes above the quota are refused with
    THROTTLING_QUOTA_EXCEEDED; before, they are made and the client is throttled. `wait_ms` is the
    throttle time of the response.
    """

    def __init__(self, ctx: RequestContext, strict_since: int) -> None:
        self._throttling = ctx.cluster.quotas.throttling
        self._ctx = ctx
        self._strict = ctx.api_version >= strict_since
        self.wait_ms = 0

    def draw(self, partitions: int) -> None:
        """Count partitions to be created or deleted. Raises ThrottledError."""
        if self._throttling is None:
            return
        try:
            wait_ms = self._throttling.mutate(
                client_of(self._ctx), partitions, self._ctx.now_ms, strict=self._strict
            )
        except ThrottledError as error:
            self.wait_ms = error.wait_ms
            raise
        if wait_ms > 0:
            self.wait_ms = wait_ms
