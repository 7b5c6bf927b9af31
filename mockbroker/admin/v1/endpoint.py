"""Endpoints: declared as data.

An endpoint runs in the admin server's trio run, behind HTTP, or in the cluster's own, for the
Python API. Importing this package does not import the HTTP server.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from mockbroker.admin.v1.problems import Problem
    from mockbroker.core.faults.schemas import InputSchemas

JSON = "application/json"
NDJSON = "application/x-ndjson"
BODY_BYTES_MAX = 1 << 20
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


class Nothing(msgspec.Struct):
    """No fields."""


class Text(NamedTuple):
    """An answer that is text instead of JSON."""

    text: str
    media: str


class Stream(NamedTuple):
    """An answer in pieces, perhaps without an end."""

    pieces: AsyncIterator[bytes]
    media: str


class Call(NamedTuple):
    """One request: its path parameters, and its query and body as the endpoint's structs."""

    path: Mapping[str, Any]
    query: Any
    body: Any


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


class Lines(NamedTuple):
    """The NDJSON body that an endpoint also accepts: the struct of a line, the call with the lines
    as they arrive, and the struct of its answer.
    """

    item: type[msgspec.Struct]
    call: Callable[[Call, AsyncIterator[Line]], Awaitable[object]]
    answer: type[msgspec.Struct]


class Endpoint(NamedTuple):
    """One method of one path.

    `body` is the struct of the JSON body. It is `dict` for an object and `object` for any value
    that `call` checks; then `body_schema` returns the schema. `answer` is a struct or a list of
    structs; an answer other than JSON has a type in `media`. A `query` of None is left out.
    `problems` are the statuses besides those of all endpoints.
    """

    method: str
    path: str
    summary: str
    call: Callable[[Call], Awaitable[object]]
    answer: Any
    query: type[msgspec.Struct] | None = Nothing
    body: Any = None
    status: int = 200
    media: tuple[str, ...] = (JSON,)
    problems: tuple[int, ...] = ()
    body_schema: Callable[[InputSchemas], dict[str, Any]] | None = None
    body_bytes_max: int = BODY_BYTES_MAX
    lines: Lines | None = None

    @property
    def tag(self) -> str:
        """The tag that the endpoint has in the OpenAPI document."""
        first = self.path.removeprefix("/v1").split("/")[1]
        return next(tag for tag, (_, paths) in TAGS.items() if first in paths)

    @property
    def key(self) -> tuple[str, str]:
        """The method, and the path without the types of its parameters."""
        return self.method, _CONVERTER.sub("}", self.path)


def by_key(endpoints: Iterable[Endpoint]) -> dict[tuple[str, str], Endpoint]:
    """Endpoints by method and path, as `Endpoint.key` has them."""
    return {endpoint.key: endpoint for endpoint in endpoints}
