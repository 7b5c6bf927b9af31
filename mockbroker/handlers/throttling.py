"""What a client's request costs it: answers that tell it to wait, and how long it is left waiting.

The answer goes out at once and names the time; then the connection is not read until that has
passed (KIP-219). Each broker keeps the accounts of its own clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mockbroker.core.quotas.throttling import (
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    Client,
    ThrottledError,
)
from mockbroker.handlers.base import NO_RESPONSE, EncodedResponse, Outcome
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec

if TYPE_CHECKING:
    from mockbroker.core.quotas.throttling import Throttling
    from mockbroker.handlers.base import RequestContext
    from mockbroker_protocol.messages.fetch import FetchResponse

# Requests of brokers, and those by which a client proves who it is: their time does not count.
EXEMPT = frozenset((ApiKey.WRITE_TXN_MARKERS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))


class Bill:
    """What a request took: bytes of its frame, ns of its handler; and who counts them."""

    __slots__ = ("size", "spent_ns", "throttling")

    def __init__(self, throttling: Throttling, size: int, spent_ns: int = 0) -> None:
        self.throttling = throttling
        self.size = size
        self.spent_ns = spent_ns


def client_of(ctx: RequestContext) -> Client:
    """Whom quotas know the sender of a request as."""
    return Client(ctx.connection.principal.partition(":")[2], ctx.client_id)


def charge(ctx: RequestContext, response: Any, bill: Bill) -> tuple[object, int]:
    """Count a request and its answer: the answer to send, and for how many ms then not to read.

    An answer may name a time already, for its fetched bytes or its changes to topics; then the
    longer one holds.
    """
    key = ctx.header.api_key
    if isinstance(response, Outcome) and response is not NO_RESPONSE:
        return response, 0
    throttling = bill.throttling
    now_ms = ctx.cluster.now_ms()
    client = client_of(ctx)
    broker_id = ctx.broker.node_id
    wait_ms, quota = getattr(response, "throttle_time_ms", 0), _TOLD_BY_HANDLER.get(key, MUTATION)
    if key == ApiKey.PRODUCE:
        wait_ms, quota = throttling.produced(broker_id, client, bill.size, now_ms), PRODUCE
    if response is not NO_RESPONSE and key not in EXEMPT:
        busy_ms = throttling.handled(broker_id, client, bill.spent_ns, now_ms)
        if busy_ms >= wait_ms:
            wait_ms, quota = busy_ms, REQUEST
    if wait_ms <= 0:
        return response, 0
    throttling.note(quota, wait_ms)
    answer: Any = response
    if key == ApiKey.FETCH and answer.responses:
        answer = _untold(ctx, throttling, client, answer)
    return _told(ctx, answer, wait_ms), wait_ms


# Whose quota it is that a handler told the client of.
_TOLD_BY_HANDLER = {int(ApiKey.FETCH): FETCH}


def _untold(
    ctx: RequestContext, throttling: Throttling, client: Client, response: FetchResponse
) -> FetchResponse:
    """A Fetch for whose handler its client has to wait brings nothing; its bytes do not count."""
    if throttling.limits_fetches(client):
        size = _fetched_size(ctx, response)
        throttling.unfetched(ctx.broker.node_id, client, size, ctx.cluster.now_ms())
    return replace(response, responses=[], node_endpoints=[])


def _told(ctx: RequestContext, response: Any, wait_ms: int) -> object:
    """The answer with the time in it, where its version has a place for that."""
    if isinstance(response, EncodedResponse):
        # Shared between connections; such a one is made anew for a client that has to wait.
        codec = response_codec(ctx.header.api_key, ctx.api_version)
        response = codec.decode(b"".join(response.parts))[0]
    if not hasattr(response, "throttle_time_ms"):
        return response
    return replace(response, throttle_time_ms=wait_ms)


def fetched(ctx: RequestContext, response: FetchResponse) -> int:
    """Count the bytes of an answer to a consumer; how long it has to wait for them, if at all.

    Then it is to be sent nothing now (FetchContext.getThrottledResponse).
    """
    throttling = ctx.cluster.quotas.throttling
    if throttling is None:
        return 0
    client = client_of(ctx)
    if not throttling.limits_fetches(client):
        return 0
    size = _fetched_size(ctx, response)
    return throttling.fetched(ctx.broker.node_id, client, size, ctx.cluster.now_ms())


def _fetched_size(ctx: RequestContext, response: FetchResponse) -> int:
    parts = response_codec(ApiKey.FETCH, ctx.api_version).encode(response)
    return 4 + sum(len(part) for part in parts)


class MutationQuota:
    """What one request may change of topics (KIP-599), counted in partitions.

    From version `strict_since` on, changes above the quota are refused with
    THROTTLING_QUOTA_EXCEEDED; before, they are made and the client has to wait. `wait_ms` is what
    the answer is to tell.
    """

    def __init__(self, ctx: RequestContext, strict_since: int) -> None:
        self._throttling = ctx.cluster.quotas.throttling
        self._ctx = ctx
        self._strict = ctx.api_version >= strict_since
        self.wait_ms = 0

    def draw(self, partitions: int) -> None:
        """Count partitions that are about to be made or dropped. Raises ThrottledError."""
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
