"""`serve --trace`: what did my client send, and what was it told? One readable line for each
request.

    12:00:01.123 1 #7 sarama@127.0.0.1:50123 PRODUCE v9 acks=-1 topic_data=[name=orders …] -> …
    0.21 ms

Fields that hold their default are left out, so what stands in the line is what the client chose to
say. Secrets are not shown: of bytes only the number, of passwords among configs nothing.
"""

from __future__ import annotations

import contextlib
import sys
from datetime import UTC, datetime

import msgspec

from mockbroker.core.journal.plain import is_secret_config
from mockbroker.handlers.base import APIS, EncodedResponse, Outcome, RequestContext

FIELD_CHARS_MAX = 60
SIDE_CHARS_MAX = 600
LIST_ITEMS_MAX = 8


def print_trace(
    context: RequestContext, request: object, response: object, elapsed_ns: int
) -> None:
    """Print one exchange to standard error, if anybody still reads it."""
    line = trace_line(context, request, response, elapsed_ns)
    # A reader that goes away, as `head` does, is no reason to close the client's connection.
    with contextlib.suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201


def trace_line(context: RequestContext, request: object, response: object, elapsed_ns: int) -> str:
    """The line for one exchange; `elapsed_ns` runs from the frame's arrival to the answer."""
    at = datetime.fromtimestamp(context.now_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    peer = context.connection
    name = APIS[context.header.api_key].key.name
    return (
        f"{at} {context.broker.node_id} #{peer.id} "
        f"{context.client_id or '-'}@{peer.client_host}:{peer.client_port} "
        f"{name} v{context.api_version} {_side(request)} -> {_answer(response)} "
        f"{elapsed_ns / 1e6:.2f} ms"
    )


def _answer(response: object) -> str:
    if isinstance(response, Outcome):
        return f"({response.value})"
    if isinstance(response, EncodedResponse):
        return f"({sum(len(part) for part in response.parts)} bytes, encoded before)"
    return _side(response)


def _side(message: object) -> str:
    text = _fields(message)
    return text if len(text) <= SIDE_CHARS_MAX else text[: SIDE_CHARS_MAX - 1] + "…"


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
            return value if len(value) <= FIELD_CHARS_MAX else value[:FIELD_CHARS_MAX] + "…"
        case _:
            return str(value)
