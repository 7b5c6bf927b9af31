"""`serve --trace`: one readable line for each request with its answer.

    12:00:01.123 1 #7 sarama@127.0.0.1:50123 PRODUCE v9 acks=-1 topic_data=[name=orders …] -> …
    0.21 ms

Fields with their default are left out: the line shows the client's own choices. Secrets are not
shown: of bytes only the number, of passwords among configs nothing.
"""

from __future__ import annotations

import contextlib
import sys
from datetime import UTC, datetime

import msgspec

from mockbroker.core.configs.secrets import is_secret_config
from mockbroker.core.shortening import shortened
from mockbroker.handlers.base import APIS, EncodedResponse, Outcome, Parked, RequestContext

FIELD_CHARS_MAX = 60
SIDE_CHARS_MAX = 600
LIST_ITEMS_MAX = 8


def print_trace(
    context: RequestContext, request: object, response: object, elapsed_ns: int
) -> None:
    """Print one exchange to standard error; a closed standard error is ignored."""
    line = trace_line(context, request, response, elapsed_ns)
    # A closed reader, such as `head`, must not close the client's connection.
    with contextlib.suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201


def trace_line(context: RequestContext, request: object, response: object, elapsed_ns: int) -> str:
    """The line for one exchange; `elapsed_ns` runs from the frame's arrival to the answer."""
    at = datetime.fromtimestamp(context.now_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    peer = context.connection
    name = APIS[context.header.api_key].key.name
    return (
        f"{at} {context.broker.node_id} #{peer.id} "
        f"{context.client_id or '-'}@{peer.address} "
        f"{name} v{context.api_version} {_side(request)} -> {_answer(response)} "
        f"{elapsed_ns / 1e6:.2f} ms"
    )


def _answer(response: object) -> str:
    if isinstance(response, Parked):
        return f"(no answer, as by Kafka: {response.unanswered})"
    if isinstance(response, Outcome):
        return f"({response.value})"
    if isinstance(response, EncodedResponse):
        return f"({sum(len(part) for part in response.parts)} bytes, encoded before)"
    return _side(response)


def _side(message: object) -> str:
    return shortened(_fields(message), SIDE_CHARS_MAX)


def _fields(message: object) -> str:
    if not isinstance(message, msgspec.Struct):
        return _value(message)
    shown = []
    for field in msgspec.structs.fields(message):
        value = getattr(message, field.name)
        default = (
            field.default_factory()
            if field.default_factory is not msgspec.NODEFAULT
            else field.default
        )
        if field.name == "value" and is_secret_config(getattr(message, "name", "")):
            shown.append("value=[hidden]")
        elif value != default:
            shown.append(f"{field.name}={_value(value)}")
    return " ".join(shown) or "{}"


def _value(value: object) -> str:
    match value:
        case msgspec.Struct():
            return "{" + _fields(value) + "}"
        case bytes() | bytearray() | memoryview():
            return f"<{len(value)} bytes>"
        case list() | tuple():
            items = [_value(item) for item in value[:LIST_ITEMS_MAX]]
            if len(value) > LIST_ITEMS_MAX:
                items.append(f"… {len(value) - LIST_ITEMS_MAX} more")
            return "[" + ", ".join(items) + "]"
        case str():
            return shortened(value, FIELD_CHARS_MAX)
        case _:
            return str(value)
