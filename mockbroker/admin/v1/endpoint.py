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
    from mockbroker.core.faults.schemas import InputSchemas

JSON = "application/json"
BODY_BYTES_MAX = 1 << 20

_CONVERTER = re.compile(r":\w+\}")


class Nothing(msgspec.Struct):
    """No fields."""


class Text(NamedTuple):
    """An answer that is a text and not JSON."""

    text: str
    media: str


class Stream(NamedTuple):
    """An answer in pieces, which may have no end."""

    pieces: AsyncIterator[bytes]
    media: str


class Call(NamedTuple):
    """One request: its path parameters, and its query and body as the endpoint's structs."""

    path: Mapping[str, Any]
    query: Any
    body: Any


class Endpoint(NamedTuple):
    """One method of one path.

    `body` is the struct of the JSON body, or `dict` where `call` checks the body; then
    `body_schema` returns its schema. `answer` is a struct or a list of structs; an answer that is
    not JSON has a type in `media`. `problems` are the statuses beside those of all endpoints.
    """

    method: str
    path: str
    summary: str
    call: Callable[[Call], Awaitable[object]]
    answer: Any
    query: type[msgspec.Struct] = Nothing
    body: Any = None
    status: int = 200
    media: tuple[str, ...] = (JSON,)
    problems: tuple[int, ...] = ()
    body_schema: Callable[[InputSchemas], dict[str, Any]] | None = None
    body_bytes_max: int = BODY_BYTES_MAX

    @property
    def key(self) -> tuple[str, str]:
        """The method, and the path without the types of its parameters."""
        return self.method, _CONVERTER.sub("}", self.path)


def by_key(endpoints: Iterable[Endpoint]) -> dict[tuple[str, str], Endpoint]:
    """Endpoints by method and path, as `Endpoint.key` has them."""
    return {endpoint.key: endpoint for endpoint in endpoints}
