"""What every handler is handed and what it may give back.

Nouns: a *handler* is a plain function from a typed request to a typed response. Its *context*
names the cluster, the broker and the connection the request arrived on. A *parked* reply is one
that is not there yet: the handler leaves it with whatever will complete it (a watcher, a timer, a
group), and the connection waits. Handlers never wait and never see an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.coordinator.shard import CoordinatorShard
    from mockbroker.core.image import Image
    from mockbroker.core.security.sasl.authenticator import Authenticator
    from mockbroker.handlers.throttling import Bill
    from mockbroker_protocol.headers import RequestHeader

R = TypeVar("R")
NONE = ErrorCode.NONE
_MISSING: Any = object()


class Parked(Generic[R]):
    """A reply that will be completed later; the first completion wins.

    `hurry`, where there is one, completes it with what there is: its client waits for more, but
    only as long as nothing else is asked for.
    """

    __slots__ = ("_response", "hurry", "on_complete")

    def __init__(self, hurry: Callable[[], None] | None = None) -> None:
        self._response: R = _MISSING
        self.hurry = hurry
        # Set by the connection that waits; called once, with no arguments, at completion.
        self.on_complete: Callable[[], None] | None = None

    @property
    def done(self) -> bool:
        return self._response is not _MISSING

    @property
    def response(self) -> R:
        """The response; only meaningful once `done`."""
        assert self._response is not _MISSING
        return self._response

    def complete(self, response: R) -> None:
        """Hand over the response. Later calls are ignored: a timer may race a wake-up."""
        if self._response is not _MISSING:
            return
        self._response = response
        if self.on_complete is not None:
            self.on_complete()


class Gathering(Generic[R]):
    """Completes a reply with the last of its `count` parts; `make` puts it together."""

    __slots__ = ("_make", "_missing", "reply")

    def __init__(self, count: int, make: Callable[[], R]) -> None:
        self._missing = count
        self._make = make
        self.reply: Parked[R] = Parked()
        if not count:
            self.reply.complete(make())

    def part_done(self) -> None:
        """One more of the parts is there."""
        self._missing -= 1
        if not self._missing:
            self.reply.complete(self._make())


def deferred(
    shard: CoordinatorShard[Any], answer: Callable[[ErrorCode], R], error: ErrorCode = NONE
) -> R | Parked[R]:
    """What `answer` makes of `CoordinatorShard.when_replicated`, now or when that is known."""
    if error or shard.is_replicated:
        return answer(error)
    parked: Parked[R] = Parked()
    shard.when_replicated(lambda failure: parked.complete(answer(failure)))
    return parked


class Outcome(Enum):
    """Answers that are not responses."""

    NO_RESPONSE = "no response"  # Produce with acks=0
    CLOSE_CONNECTION = "close"  # acks=0 with a failed partition: the client must refresh metadata


NO_RESPONSE = Outcome.NO_RESPONSE
CLOSE_CONNECTION = Outcome.CLOSE_CONNECTION


class EncodedResponse:
    """A response body that is encoded already: `parts` go out as they are, behind the header."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        self.parts = parts


class ConnectionInfo:
    """Who is at the other end. `software_*` are filled in by ApiVersions (KIP-511), `sasl` and
    `principal` by the connection where its listener asks who is there.
    """

    __slots__ = (
        "client_host",
        "client_port",
        "closed",
        "id",
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
        self.principal = "User:ANONYMOUS"
        self.security_protocol = "PLAINTEXT"
        self.sasl: Authenticator | None = None
        self.software_name = "unknown"
        self.software_version = "unknown"


class Marks:
    """What rules did to a request: their names, and `fate`, what became of its answer instead of
    being sent ("" for an answer that went out whole).
    """

    __slots__ = ("fate", "rules")

    def __init__(self, rules: tuple[str, ...]) -> None:
        self.rules = rules
        self.fate = ""


class RequestContext:
    """One request's surroundings: cluster, broker, listener, header, connection, time of arrival
    (ms), and its number in the journal (0 without one). `marks` is set where rules fire for it,
    `is_late` where the answer comes at another time than the request.
    """

    __slots__ = (
        "bill",
        "broker",
        "cluster",
        "connection",
        "header",
        "is_late",
        "listener",
        "marks",
        "now_ms",
        "seq",
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
        self.marks: Marks | None = None
        # What the request took, while quotas are set.
        self.bill: Bill | None = None

    @property
    def image(self) -> Image:
        """The metadata that the broker knows just now; a delayed answer may see a newer one."""
        return self.broker.image

    @property
    def api_version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        """The client id; a null one counts as the empty string, as in Kafka."""
        return self.header.client_id or ""


class Api:
    """A handler with the versions it serves. `versions` are inclusive and are what is
    advertised.
    """

    __slots__ = ("advertised_min", "handle", "key", "max_version", "min_version")

    def __init__(
        self,
        key: ApiKey,
        versions: tuple[int, int],
        advertised_min: int | None,
        handle: Callable[[RequestContext, Any], object],
    ) -> None:
        self.key = key
        self.min_version, self.max_version = versions
        self.advertised_min = self.min_version if advertised_min is None else advertised_min
        self.handle = handle


class LazyApi(Api):
    """An API whose module is imported by its first request, so that a cluster starts sooner."""

    __slots__ = ("loaded", "module")

    def __init__(
        self, key: ApiKey, versions: tuple[int, int], advertised_min: int | None, module: str
    ) -> None:
        super().__init__(key, versions, advertised_min, self._first_request)
        self.module = module
        self.loaded: Callable[[RequestContext, Any], object] | None = None

    def _first_request(self, ctx: RequestContext, request: object) -> object:
        import_module(self.module)  # registers the handler, which takes the place of this function
        assert self.loaded is not None
        return self.loaded(ctx, request)


APIS: dict[int, Api] = {}

# What a broker passes on to the controller (KIP-590).
FORWARDED = frozenset(
    (
        "ADD_RAFT_VOTER",
        "ALTER_CLIENT_QUOTAS",
        "ALTER_CONFIGS",
        "ALTER_PARTITION_REASSIGNMENTS",
        "ALTER_USER_SCRAM_CREDENTIALS",
        "CREATE_ACLS",
        "CREATE_DELEGATION_TOKEN",
        "CREATE_PARTITIONS",
        "CREATE_TOPICS",
        "DELETE_ACLS",
        "DELETE_TOPICS",
        "DESCRIBE_QUORUM",
        "ELECT_LEADERS",
        "EXPIRE_DELEGATION_TOKEN",
        "INCREMENTAL_ALTER_CONFIGS",
        "LIST_PARTITION_REASSIGNMENTS",
        "REMOVE_RAFT_VOTER",
        "RENEW_DELEGATION_TOKEN",
        "UNREGISTER_BROKER",
        "UPDATE_FEATURES",
    )
)


FORWARDING_TIMEOUT_MS = 60_000  # BrokerToControllerChannelManager's retryTimeoutMs


def _forward(key: ApiKey, handle: Callable[..., object]) -> Callable[[RequestContext, Any], object]:
    """The handler of an API that the controller serves, at any broker."""

    def forwarded(ctx: RequestContext, request: Any) -> object:
        return at_controller(key, ctx, request, lambda: handle(ctx, request))

    return forwarded


def at_controller(
    key: ApiKey, ctx: RequestContext, request: Any, handle: Callable[[], object]
) -> object:
    """What `handle` answers, once the broker hears the controller.

    A request that waits for a minute is answered REQUEST_TIMED_OUT (ForwardingManager).
    """
    if ctx.broker.hears_controller:
        return handle()
    return _Forwarded(key, ctx, request, handle).parked


class _Forwarded:
    """A request that waits for the way to the controller."""

    __slots__ = ("_ctx", "_handle", "_key", "_request", "_timer", "parked")

    def __init__(
        self, key: ApiKey, ctx: RequestContext, request: Any, handle: Callable[[], object]
    ) -> None:
        self._key = key
        self._ctx = ctx
        self._request = request
        self._handle = handle
        self.parked: Parked[Any] = Parked()
        cluster = ctx.cluster
        due_ms = cluster.now_ms() + FORWARDING_TIMEOUT_MS
        self._timer = cluster.timers.call_at(due_ms, self._time_out)
        ctx.broker.awaiting_controller[self._go] = None

    def _go(self) -> None:
        """The broker hears the controller again."""
        self._timer.cancel()
        answer = self._handle()
        if isinstance(answer, Parked) and not answer.done:
            answer.on_complete = lambda: self.parked.complete(answer.response)
        else:
            self.parked.complete(answer.response if isinstance(answer, Parked) else answer)

    def _time_out(self) -> None:
        from mockbroker.handlers.error_responses import error_response

        self._ctx.broker.awaiting_controller.pop(self._go, None)
        error = ErrorCode.REQUEST_TIMED_OUT
        version = self._ctx.api_version
        self.parked.complete(error_response(self._key, version, self._request, error))


H = TypeVar("H", bound=Callable[..., object])


def api(
    key: ApiKey, versions: tuple[int, int], *, advertised_min: int | None = None
) -> Callable[[H], H]:
    """Register the decorated function as the handler of `key`.

    The versions stand beside the code that serves them, so that ApiVersions cannot disagree with
    it. `advertised_min` is for Produce alone, whose brokers advertise 0 but serve 3 and up
    (KAFKA-18659).
    """

    def register(function: H) -> H:
        handle = cast("Callable[..., object]", function)
        if key.name in FORWARDED:
            handle = _forward(key, handle)
        known = APIS.get(int(key))
        if known is None:
            APIS[int(key)] = Api(key, versions, advertised_min, handle)
        elif isinstance(known, LazyApi) and known.module == function.__module__:
            known.handle = known.loaded = handle
        else:
            raise ValueError(f"two handlers for {key.name}")
        return function

    return register
