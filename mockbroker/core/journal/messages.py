"""Decoded messages of the journal: the entities of a request, and the errors of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mockbroker.core.journal.entries import ResponseEntry
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.declare import (
    GENERATION,
    GROUP_ID,
    INSTANCE_ID,
    MEMBER_ID,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_ID,
    Entity,
)
from mockbroker_protocol.entities import mentions
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.headers import RequestHeader, decode_request_header
from mockbroker_protocol.types import Buffer

Fields = dict[str, Any]

# The fields of events, and columns of tables, for the entities of a request.
NAMED: Mapping[str, Entity] = {
    "group": GROUP_ID,
    "member": MEMBER_ID,
    "instance_id": INSTANCE_ID,
    "generation": GENERATION,
    "transactional_id": TRANSACTIONAL_ID,
    "producer_id": PRODUCER_ID,
    "producer_epoch": PRODUCER_EPOCH,
}
# The broker refuses a larger request by default. A reader does not decode it either.
ELEMENTS_DECODED_MAX = 20_000
_FIELD_OF = {kind: field for field, kind in NAMED.items()}
_KINDS = frozenset(NAMED.values())
# Fields of requests that are fields of events, too.
_SETTINGS = ("acks", "isolation_level")


class DecodedRequest(NamedTuple):
    """A request's header and message. `message` is None if the bytes are no request of that API and
    version; `error` says why.
    """

    header: RequestHeader
    message: Any
    error: str = ""

    def facts(self) -> Fields:
        """See `facts_of`; empty without a message."""
        return {} if self.message is None else facts_of(self.message, self.header.api_version)


def decode_request(frame: Buffer) -> DecodedRequest:
    """Decode a request of the journal. Its header was decoded before it was written."""
    view = memoryview(frame)
    header, position = decode_request_header(view)
    try:
        codec = request_codec(header.api_key, header.api_version)
        message, _ = codec.decode_untrusted(view, position, ELEMENTS_DECODED_MAX)
    except (DecodeError, UnknownVersionError) as error:
        return DecodedRequest(header, None, str(error))
    return DecodedRequest(header, message)


def decode_response(entry: ResponseEntry) -> Any:
    """The message of an answer; None without one, or if a rule has damaged its bytes."""
    if entry.body is None:
        return None
    body = entry.body[0] if len(entry.body) == 1 else b"".join(entry.body)
    try:
        codec = response_codec(entry.api_key, entry.api_version)
        message, _ = codec.decode(memoryview(body), 0)
    except (DecodeError, UnknownVersionError):
        return None
    return message


def facts_of(request: msgspec.Struct, version: int) -> Fields:
    """The entities and settings of a request, by the names of an event's fields.

    A single value is the value itself; several of a kind are a tuple, each once, in their order.
    """
    named: dict[str, dict[Any, None]] = {}
    for kind, value, _ in mentions(request, version, _KINDS):
        if value is not None:
            named.setdefault(_FIELD_OF[kind], {})[value] = None
    found: Fields = {
        field: tuple(values) if len(values) > 1 else next(iter(values))
        for field, values in named.items()
    }
    for field in _SETTINGS:
        value = getattr(request, field, None)
        if value is not None:
            found[field] = value
    return found


def error_names(message: Any) -> tuple[str, ...]:
    """The names of all error codes in an answer but NONE, each once, in order."""
    found: dict[str, None] = {}
    if message is not None:
        for code in _codes(message):
            if code:
                found[error_name(code)] = None
    return tuple(found)


def error_name(code: int) -> str:
    """Kafka's name of an error code; the number of an unknown one."""
    known = ErrorCode._value2member_map_.get(code)
    return str(code) if known is None else known.name


def _codes(item: msgspec.Struct) -> Iterator[int]:
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if name.endswith("error_code"):
            yield value
        elif isinstance(value, msgspec.Struct):
            yield from _codes(value)
        elif isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
            for each in value:
                yield from _codes(each)
