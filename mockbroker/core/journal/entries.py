"""What the broker writes down, before anybody has looked at it.

Entries hold numbers, text and bytes only where they can, so that a journal of a hundred thousand of
them costs the garbage collector nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

# What an entry costs beside the bytes it refers to; measured on CPython 3.11.
ENTRY_BYTES = 400


class RequestEntry(NamedTuple):
    """A request as it came: `frame` is all of it but its size."""

    seq: int
    virtual_ms: int
    real_ns: int
    node_id: int
    connection_id: int
    frame: Buffer

    @property
    def size(self) -> int:
        return len(self.frame) + ENTRY_BYTES


class ResponseEntry(NamedTuple):
    """What became of request `request_seq`: the answer's `body` without its header, in pieces; or
    `body` is None and `outcome` says why there is no answer.
    """

    seq: int
    virtual_ms: int
    real_ns: int
    node_id: int
    connection_id: int
    request_seq: int
    api_key: int
    api_version: int
    correlation_id: int
    body: Sequence[Buffer] | None
    outcome: str
    rules: tuple[str, ...]

    @property
    def size(self) -> int:
        return ENTRY_BYTES + sum(map(len, self.body or ()))


class FactEntry(NamedTuple):
    """Anything else: an event of the cluster (a struct), or a fact told as a mapping."""

    seq: int
    virtual_ms: int
    real_ns: int
    kind: str
    fact: object

    @property
    def size(self) -> int:
        return ENTRY_BYTES


Entry: TypeAlias = RequestEntry | ResponseEntry | FactEntry
