"""Asking a handler in bytes: requests and answers pass through their codecs, as on a connection."""

from __future__ import annotations

from typing import Any

from mockbroker.core.errors import ApiError
from mockbroker.handlers import load_all
from mockbroker.handlers.base import (
    APIS,
    Api,
    ConnectionInfo,
    EncodedResponse,
    Outcome,
    Parked,
    RequestContext,
)
from mockbroker.handlers.rows import perform
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.headers import RequestHeader
from tests.support.requests import Node


def context(
    node: Node,
    key: ApiKey,
    version: int,
    *,
    broker: int = 1,
    listener: str = "PLAINTEXT",
    connection: ConnectionInfo | None = None,
) -> RequestContext:
    """The surroundings of a request to one broker of the node's cluster."""
    process = node.cluster.processes.get(broker)
    assert process is not None
    return RequestContext(
        node.cluster,
        process,
        listener,
        RequestHeader(int(key), version, 1, "tester"),
        connection or ConnectionInfo(1, "127.0.0.1", 50000),
        node.now_ms,
    )


def handle(api: Api, ctx: RequestContext, request: object) -> Any:
    """What a connection answers: an ApiError becomes the API's error response."""
    try:
        return perform(api, ctx, request)
    except ApiError as error:
        return ctx.failure(request, error)


def ask(node: Node, key: ApiKey, request: object, version: int | None = None, **where: Any) -> Any:
    """The decoded answer to `request`, which must be there at once; newest version by default.

    An outcome that is no answer (the connection closes) is returned as it is.
    """
    load_all()
    served = APIS[int(key)]
    if version is None:
        version = served.max_version
    sent = b"".join(request_codec(key, version).encode(request))
    decoded, _ = request_codec(key, version).decode(memoryview(sent))
    surroundings = context(node, key, version, **where)
    answer = handle(served, surroundings, decoded)
    if isinstance(answer, Parked):
        answer = answer.response
    if isinstance(answer, Outcome):
        return answer
    codec = response_codec(key, version)
    parts = answer.parts if isinstance(answer, EncodedResponse) else codec.encode(answer)
    body = b"".join(parts)
    response, end = codec.decode(memoryview(body))
    assert end == len(body)
    return response


def nodes(count: int, **configs: str) -> Node:
    """A cluster of so many brokers; `a_b` means the broker config a.b."""
    return Node(racks=[None] * count, configs={k.replace("_", "."): v for k, v in configs.items()})
