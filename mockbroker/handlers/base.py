"""The arguments and results of handlers, and the contracts of APIs.

Nouns: a *handler* is a plain function from a typed request to a typed response. Its *context* has
the cluster, the broker and the connection of the request. A *parked* reply is completed later, by a
watcher, a timer or a group, while the connection waits. Handlers never wait and have no event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mockbroker.core.errors import ApiError, LimitError
from mockbroker.core.events import RequestUnanswered
from mockbroker.handlers.refusals import DERIVED, Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.exceptions import StringTooLongError

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.coordinator.shard import CoordinatorShard
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.security.sasl.authenticator import Authenticator
    from mockbroker.handlers.authorization import Authorization
    from mockbroker.handlers.rows import Rows
    from mockbroker.handlers.throttling import RequestUsage
    from mockbroker_protocol.headers import RequestHeader

log = logging.getLogger("mockbroker")

R = TypeVar("R")
NONE = ErrorCode.NONE
_MISSING: Any = object()


class Parked(Generic[R]):
    """A reply that is completed later; the first completion wins.

    A connection calls `force_complete`, if there is one, when the next request is waiting.
    """

    __slots__ = ("_response", "force_complete", "on_complete", "unanswered")

    def __init__(self, force_complete: Callable[[], None] | None = None) -> None:
        self._response: R = _MISSING
        self.force_complete = force_complete
        # Set by the connection; called once, at completion.
        self.on_complete: Callable[[], None] | None = None
        self.unanswered = ""  # why it is never completed, if that is so

    @property
    def done(self) -> bool:
        return self._response is not _MISSING

    @property
    def response(self) -> R:
        """The response, once `done`."""
        assert self._response is not _MISSING
        return self._response

    def complete(self, response: R) -> None:
        """Set the response. Later calls are ignored: a timer may come after a watcher."""
        if self._response is not _MISSING:
            return
        self._response = response
        if self.on_complete is not None:
            self.on_complete()


class CombinedReply(Generic[R]):
    """A reply that the last of `count` parts completes, with the response from `make`."""

    __slots__ = ("_make", "_missing", "reply")

    def __init__(self, count: int, make: Callable[[], R]) -> None:
        self._missing = count
        self._make = make
        self.reply: Parked[R] = Parked()
        if not count:
            self.reply.complete(make())

    def part_done(self) -> None:
        self._missing -= 1
        if not self._missing:
            self.reply.complete(self._make())


def deferred(
    shard: CoordinatorShard[Any], answer: Callable[[ErrorCode], R], error: ErrorCode = NONE
) -> R | Parked[R]:
    """The response for an error, or for the result of `CoordinatorShard.when_replicated`."""
    if error or shard.is_replicated:
        return answer(error)
    parked: Parked[R] = Parked()
    shard.when_replicated(lambda failure: parked.complete(answer(failure)))
    return parked


def unanswered(ctx: RequestContext, reason: str) -> Parked[Any]:
    """A reply that never comes, because Kafka's broker fails on the request without an answer.

    Journal and trace have the reason; a client only sees that no answer comes.
    """
    header = ctx.header
    ctx.cluster.runtime.emit(
        RequestUnanswered(
            ctx.now_ms,
            ctx.broker.node_id,
            ctx.connection.id,
            ctx.client_id,
            ApiKey(header.api_key).name,
            header.api_version,
            header.correlation_id,
            reason,
        )
    )
    parked: Parked[Any] = Parked()
    parked.unanswered = reason
    return parked


def fenced_error(error: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """An error in the version of a producer: before `fenced_since`, PRODUCER_FENCED becomes
    INVALID_PRODUCER_EPOCH (KIP-588).
    """
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


class Outcome(Enum):
    """A result of a handler without a response."""

    NO_RESPONSE = "no response"  # Produce with acks=0
    CLOSE_CONNECTION = "close"  # acks=0 with an error: the client refreshes its metadata


NO_RESPONSE = Outcome.NO_RESPONSE
CLOSE_CONNECTION = Outcome.CLOSE_CONNECTION


class EncodedResponse:
    """An encoded response body; `parts` follow the response header.

    `throttle_time_ms` is the throttle time in it, 0 if there is none.
    """

    __slots__ = ("parts", "throttle_time_ms")

    def __init__(
        self, parts: Sequence[bytes | bytearray | memoryview], throttle_time_ms: int = 0
    ) -> None:
        self.parts = parts
        self.throttle_time_ms = throttle_time_ms


class ConnectionInfo:
    """The client of a connection. ApiVersions sets `software_*` (KIP-511); the connection sets
    `principal`, and `sasl` if its listener authenticates by SASL.
    """

    __slots__ = (
        "client_host",
        "client_port",
        "closed",
        "id",
        "listener",
        "principal",
        "sasl",
        "security_protocol",
        "software_name",
        "software_version",
    )

    def __init__(self, id: int, client_host: str, client_port: int) -> None:  # noqa: A002
        self.id = id
        self.client_host = client_host
        self.client_port = client_port
        self.closed = False
        self.listener = ""  # the connection sets the name of its listener
        self.principal = "User:ANONYMOUS"
        self.security_protocol = "PLAINTEXT"
        self.sasl: Authenticator | None = None
        self.software_name = "unknown"
        self.software_version = "unknown"

    @property
    def address(self) -> str:
        """The client's host and port."""
        return f"{self.client_host}:{self.client_port}"

    def peer_at(self, node_id: int) -> str:
        """The broker and the client's address, for log lines."""
        return f"broker {node_id} client {self.address}"


class Marks:
    """The rules that fired for a request, and `outcome`: why the answer was not sent whole, or
    "".
    """

    __slots__ = ("outcome", "rules")

    def __init__(self, rules: tuple[str, ...]) -> None:
        self.rules = rules
        self.outcome = ""


class RequestContext:
    """The context of a request: cluster, broker, listener, header, connection, time of arrival (ms)
    and its number in the journal (0 without one). `marks` is set if rules fire for the request,
    `is_late` if the answer comes later than the request, `is_forwarded` once it is at the
    controller, `usage` while there are quotas.
    """

    __slots__ = (
        "broker",
        "cluster",
        "connection",
        "header",
        "is_forwarded",
        "is_late",
        "listener",
        "marks",
        "now_ms",
        "seq",
        "usage",
    )

    def __init__(
        self,
        cluster: Cluster,
        broker: Broker,
        listener: str,
        header: RequestHeader,
        connection: ConnectionInfo,
        now_ms: int,
    ) -> None:
        self.cluster = cluster
        self.broker = broker
        self.listener = listener
        self.header = header
        self.connection = connection
        self.now_ms = now_ms
        self.seq = 0
        self.is_late = False
        self.is_forwarded = False
        self.marks: Marks | None = None
        self.usage: RequestUsage | None = None

    @property
    def image(self) -> MetadataImage:
        """The broker's present metadata; a delayed answer may see newer ones."""
        return self.broker.image

    @property
    def api_version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        """The client id; a null one is the empty string, as in Kafka."""
        return self.header.client_id or ""

    @contextmanager
    def as_cause(self) -> Iterator[None]:
        """Journal events of the block are caused by this request, though others came meanwhile."""
        journal = self.cluster.runtime.journal
        if journal is None:
            yield
            return
        former, journal.cause_seq = journal.cause_seq, self.seq
        try:
            yield
        finally:
            journal.cause_seq = former

    def refusal(self, request: Any, error: ErrorCode, message: str | None = None) -> Any:
        """The API's error response (`error_responses`)."""
        from mockbroker.handlers.error_responses import error_response

        header = self.header
        return error_response(
            ApiKey(header.api_key), header.api_version, request, error, message=message
        )

    def failure(self, request: Any, error: Exception) -> Any:
        """The response to a request whose handler has raised `error` (`failure_response`).

        The log has the traceback of a defect. A string that is too long for the response came from
        a client: a warning says so. A limit that is exceeded is counted.
        """
        from mockbroker.handlers.error_responses import failure_response

        key = ApiKey(self.header.api_key)
        peer = self.connection.peer_at(self.broker.node_id)
        if isinstance(error, StringTooLongError):
            log.warning("%s: a response to %s: %s", peer, key.name, error)
        elif isinstance(error, LimitError):
            self.cluster.runtime.limits_exceeded[error.limit] += 1
        elif not isinstance(error, ApiError):
            log.error("%s: handling %s failed", peer, key.name, exc_info=error)
        return failure_response(key, self.api_version, request, error)


class Api:
    """The contract of an API, as declared beside its handler (`api`). Versions are inclusive."""

    __slots__ = (
        "advertised_min",
        "authorize",
        "forwarded",
        "handle",
        "key",
        "max_version",
        "min_version",
        "refusal",
        "rows",
    )

    def __init__(
        self,
        key: ApiKey,
        versions: tuple[int, int],
        advertised_min: int,
        authorize: Authorization,
        refusal: Refusal,
        handle: Callable[[RequestContext, Any], object],
        *,
        forwarded: bool,
        rows: Rows | None,
    ) -> None:
        self.key = key
        self.min_version, self.max_version = versions
        self.advertised_min = advertised_min
        self.authorize = authorize
        self.refusal = refusal
        self.forwarded = forwarded
        self.handle = handle
        self.rows = rows


APIS: dict[int, Api] = {}

FORWARDING_TIMEOUT_MS = 60_000  # BrokerToControllerChannelManager's retryTimeoutMs


def _forward(handle: Callable[..., object]) -> Callable[[RequestContext, Any], object]:
    """The handler of an API that the controller serves, for any broker."""

    def forwarded(ctx: RequestContext, request: Any) -> object:
        return at_controller(ctx, request, lambda: handle(ctx, request))

    return forwarded


def at_controller(ctx: RequestContext, request: Any, handle: Callable[[], object]) -> object:
    """Call `handle` on the controller: directly if no hop is needed, otherwise in an envelope.

    After a minute the answer is REQUEST_TIMED_OUT (ForwardingManager).
    """
    if ctx.is_forwarded:
        return handle()
    network = ctx.cluster.replication.network
    if ctx.broker.has_newest_image and network.is_quiet:
        return handle()
    from mockbroker.handlers.forwarding import Forwarded, is_direct

    if ctx.broker.has_newest_image and is_direct(ctx):
        return handle()
    return Forwarded(ctx, request, handle).parked


H = TypeVar("H", bound=Callable[..., object])


def api(
    key: ApiKey,
    versions: tuple[int, int],
    *,
    authorize: Authorization,
    forwarded: bool = False,
    refusal: Refusal = DERIVED,
    advertised_min: int | None = None,
    rows: Rows | None = None,
) -> Callable[[H], H]:
    """Register the decorated function as the handler of `key`, with its contract.

    Args:
        key: the API.
        versions: the first and the last version served, which ApiVersions advertises.
        authorize: the ACLs required, if the cluster has an authorizer.
        forwarded: whether a broker forwards the request to the controller (KIP-590), and waits
            until there is one.
        refusal: how the error response differs from the derived one.
        advertised_min: the first version advertised; Produce alone advertises 0 and serves 3 up
            (KAFKA-18659).
        rows: set if the handler answers each row of a request by itself.

    Raises:
        ValueError: the API has a handler already.
    """

    def register(function: H) -> H:
        handle = cast("Callable[..., object]", function)
        if forwarded:
            handle = _forward(handle)
        if int(key) in APIS:
            raise ValueError(f"two handlers for {key.name}")
        least = versions[0] if advertised_min is None else advertised_min
        APIS[int(key)] = Api(
            key, versions, least, authorize, refusal, handle, forwarded=forwarded, rows=rows
        )
        return function

    return register
