"""Requests of many rows, which are answered in slices.

Some APIs answer each *row* of a request by itself: a resource with its configs, a group with its
members. A row of ten bytes may have an answer of thousands. So a request of more rows than
`ROWS_PER_SLICE` is split (see `slices`), and its answers are encoded one by one. Equal rows share
one answer, so the memory of a response is bounded by the state that it describes;
`mockbroker.response.bytes.max` bounds the response as a whole.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from mockbroker.handlers.authorization import authorized
from mockbroker.handlers.base import EncodedResponse, Outcome, Parked
from mockbroker.handlers.encoded_rows import around, array_count, place_of
from mockbroker.handlers.slices import in_slices
from mockbroker_protocol.codec import response_codec

if TYPE_CHECKING:
    from mockbroker.handlers.base import Api, RequestContext
    from mockbroker_protocol import ErrorCode

ROWS_PER_SLICE = 32
# Rows of larger responses are sent from where they are: many may be the same.
JOINED_BYTES_MAX = 1 << 20

_key_of = msgspec.msgpack.Encoder().encode


class Rows(NamedTuple):
    """The contract of an API that answers each element of an array of the request by itself.

    `request` and `response` name the arrays. Rows with an error in `first` come before the others,
    those with an error in `last` behind them.
    """

    request: str
    response: str
    first: frozenset[ErrorCode] = frozenset()
    last: frozenset[ErrorCode] = frozenset()

    def are_many(self, request: Any) -> bool:
        """Whether a request is to be answered in slices."""
        return len(getattr(request, self.request) or ()) > ROWS_PER_SLICE


def perform(api: Api, ctx: RequestContext, request: Any) -> object:
    """The response to a request, authorized if the cluster has an authorizer. Raises ApiError."""
    rows = api.rows
    if rows is not None and rows.are_many(request):
        return in_slices(ctx, request, _answered(api, rows, ctx, request))
    if ctx.cluster.authorizer is None:
        return api.handle(ctx, request)
    return authorized(api, ctx, request)


def _answered(
    api: Api, rows: Rows, ctx: RequestContext, request: Any
) -> Generator[Parked[Any] | None, None, EncodedResponse | Outcome]:
    """Answer each row as a request of its own."""
    codec = response_codec(ctx.header.api_key, ctx.api_version)
    wanted: list[Any] = getattr(request, rows.request)
    known: dict[bytes, tuple[int, bytes]] = {}
    placed: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
    before, after, cut = b"", b"", slice(0)
    for number, row in enumerate(wanted, 1):
        key = _key_of(row)
        if key not in known:
            reply: Any = perform(api, ctx, replace(request, **{rows.request: [row]}))
            if isinstance(reply, Parked):
                if not reply.done:
                    yield reply
                reply = reply.response
            if isinstance(reply, Outcome):
                return reply
            if not known:
                before, after = around(codec, reply, rows.response)
                cut = place_of(1, before, after, flexible=codec.flexible)
            known[key] = _place(rows, reply), b"".join(codec.encode(reply))[cut]
        place, encoded = known[key]
        placed[place].append(encoded)
        if number % ROWS_PER_SLICE == 0 and number < len(wanted):
            yield None
    first, others, last = placed
    count = array_count(len(wanted), flexible=codec.flexible)
    parts = [before + count, *first, *others, *last, after]
    if sum(map(len, parts)) <= JOINED_BYTES_MAX:
        parts = [b"".join(parts)]
    return EncodedResponse(parts)


def _place(rows: Rows, response: Any) -> int:
    """Where the row of a response comes: 0 first, 2 last, 1 between these."""
    (row,) = getattr(response, rows.response)
    error = getattr(row, "error_code", 0)
    return 0 if error in rows.first else 2 if error in rows.last else 1
