"""Endpoints: declared as data, each by its function.

An endpoint runs in the admin server's trio run, behind HTTP, or in the cluster's own, for the
Python API. Importing this package does not import the HTTP server.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cached_property
from types import NoneType, SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NamedTuple,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from mockbroker.core.limits import ADMIN_BODY_BYTES_MAX

if TYPE_CHECKING:
    from mockbroker.admin.v1.problems import Problem
    from mockbroker.core.faults.schemas import InputSchemas

JSON = "application/json"
NDJSON = "application/x-ndjson"
# For orchestrators and scrapers: without secrets, changes or a token.
OPEN_PATHS = ("/healthz", "/metrics")

# Tags of the OpenAPI document: their descriptions, and the first parts of their paths.
TAGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "topics": (
        "Topics, partitions and their records",
        ("topics", "partitions", "producers"),
    ),
    "groups": (
        "Groups, their members, offsets, lag, share partitions and tasks",
        ("groups", "lag", "coordinator", "share-partitions", "streams-tasks"),
    ),
    "cluster": (
        "Brokers, the controller, transactions and connections",
        (
            "cluster",
            "brokers",
            "controller",
            "network",
            "configs",
            "transactions",
            "connections",
            "clients",
            "telemetry",
        ),
    ),
    "faults": (
        "Rules, held requests, actions, and recipes for failures",
        ("faults", "export", "held", "actions", "cookbook"),
    ),
    "time and state": (
        "The clock, snapshots, and waiting until the cluster is at rest",
        ("clock", "timers", "snapshots", "snapshot", "restore", "reset", "settle"),
    ),
    "journal": (
        "The journal, expectations that are checked against it, and the audit",
        ("journal", "verify", "audit"),
    ),
    "service": (
        "The service itself: its index, description, health and metrics",
        ("", "about", "state-machines", "openapi.json", "healthz", "metrics"),
    ),
}

_CONVERTER = re.compile(r":\w+\}")

C = TypeVar("C")
T = TypeVar("T")


class Nothing(msgspec.Struct):
    """No fields."""


class Text(NamedTuple):
    """An answer that is text instead of JSON."""

    text: str
    media: str


class Stream(NamedTuple, Generic[T]):
    """An answer in pieces, perhaps without an end.

    T is the struct that a piece encodes, or `bytes` if the pieces are no JSON.
    """

    pieces: AsyncIterator[bytes]
    media: str


class Line(NamedTuple):
    """One line of an NDJSON body: its number from 1, its struct, and its size in bytes."""

    number: int
    item: Any
    size: int


class LineError(Exception):
    """A line of an NDJSON body with a problem."""

    def __init__(self, number: int, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.number = number
        self.problem = problem


class EndpointCall(NamedTuple):
    """One request: its path parameters, and its query and body as the endpoint's structs.

    Instead of a body, it may have `lines` as they arrive, if the endpoint accepts them.
    """

    path: Mapping[str, Any]
    query: Any
    body: Any
    lines: AsyncIterator[Line] | None = None


class Options(TypedDict, total=False):
    """Parts of an endpoint that have a default."""

    query: type[msgspec.Struct] | None
    body: Any
    lines: type[msgspec.Struct]
    created: bool
    media: tuple[str, ...]
    problems: tuple[int, ...]
    body_schema: Callable[[InputSchemas], dict[str, Any]]
    body_limit: str


class Endpoint(msgspec.Struct, Generic[C], frozen=True, dict=True):
    """One method of one path. `call` takes a C, such as the cluster, and the request.

    `declared` is the function whose annotation has the type of the answer: a struct, a list of
    structs, a union of these, None, Text or Stream. An answer other than JSON has a type in
    `media`. With `created`, the status is 201.

    `body` is the struct of the JSON body. It is `dict` for an object and `object` for any value
    that `call` checks; then `body_schema` returns the schema. `lines` is the struct of a line of
    the NDJSON body that is also accepted. `body_limit` is the config that limits the bytes of the
    JSON body, or of a line. A `query` of None is left out. `problems` are the statuses besides
    those of all endpoints.
    """

    method: str
    path: str
    summary: str
    call: Callable[[C, EndpointCall], Awaitable[object]]
    declared: Callable[..., object]
    query: type[msgspec.Struct] | None = Nothing
    body: Any = None
    lines: type[msgspec.Struct] | None = None
    created: bool = False
    media: tuple[str, ...] = (JSON,)
    problems: tuple[int, ...] = ()
    body_schema: Callable[[InputSchemas], dict[str, Any]] | None = None
    body_limit: str = ADMIN_BODY_BYTES_MAX

    @cached_property
    def answer(self) -> Any:
        """The type of the answer, or of the items of a stream; None without JSON."""
        declared = self.declared
        # Alone: types of parameters may be imported for type checkers only.
        alone = SimpleNamespace(__annotations__={"return": declared.__annotations__["return"]})
        found = get_type_hints(alone, declared.__globals__)["return"]
        if get_origin(found) is Stream:
            [found] = get_args(found)
        return None if found in (NoneType, Text, bytes) else found

    @cached_property
    def status(self) -> int:
        """The status of a success."""
        if self.created:
            return 201
        return 204 if self.answer is None and self.media == (JSON,) else 200

    @property
    def tag(self) -> str:
        """The tag that the endpoint has in the OpenAPI document."""
        first = self.path.removeprefix("/v1").split("/")[1]
        return next(tag for tag, (_, paths) in TAGS.items() if first in paths)

    @property
    def key(self) -> tuple[str, str]:
        """The method, and the path without the types of its parameters."""
        return self.method, _CONVERTER.sub("}", self.path)


class Endpoints(list[Endpoint[C]]):
    """The endpoints of a module, in the order of their declarations. Functions are decorated."""

    def get(
        self, path: str, summary: str, **options: Unpack[Options]
    ) -> Callable[
        [Callable[[C, EndpointCall], Awaitable[T]]], Callable[[C, EndpointCall], Awaitable[T]]
    ]:
        """An endpoint that shows something, from `function(c, call)`."""

        def declare(
            function: Callable[[C, EndpointCall], Awaitable[T]],
        ) -> Callable[[C, EndpointCall], Awaitable[T]]:
            self.append(Endpoint("GET", path, summary, function, function, **options))
            return function

        return declare
