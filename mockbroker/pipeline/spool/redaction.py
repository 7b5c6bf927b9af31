"""Removes secrets (passwords, tokens, keys, salts) from entries that are written to disk.

A message with secret fields is decoded, emptied of them and encoded again. Messages of hops are
left out, as no table has them.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from mockbroker.core.configs.secrets import is_secret_config
from mockbroker.core.journal.entries import HopEntry, RequestEntry, ResponseEntry
from mockbroker.core.journal.messages import decode_request, decode_response
from mockbroker.core.journal.plain import SECRET_FIELDS
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.declarations import declared_keys, schema_module, shapes_of
from mockbroker_protocol.headers import decode_request_header
from mockbroker_protocol.types import Buffer

T = TypeVar("T")

_API_KEY = slice(0, 2)


def redacted(entry: T) -> T:
    """The entry itself, or one without its secrets."""
    if isinstance(entry, RequestEntry):
        api_key = int.from_bytes(entry.frame[_API_KEY], "big", signed=True)
        if _has_secrets(api_key, "REQUEST"):
            return msgspec.structs.replace(entry, frame=_redacted_frame(entry.frame))
    elif isinstance(entry, ResponseEntry):
        if entry.body is not None and _has_secrets(entry.api_key, "RESPONSE"):
            return msgspec.structs.replace(entry, body=_redacted_body(entry))
    elif isinstance(entry, HopEntry):
        return msgspec.structs.replace(entry, message=None)
    return entry


@cache
def _has_secrets(api_key: int, message: str) -> bool:
    """Whether a field of the API's request or response may hold a secret, in any version."""
    if api_key not in declared_keys():
        return False
    schema = schema_module(ApiKey(api_key).name.lower())
    names = [
        {field.name for field in shape.fields}
        for shape in shapes_of(getattr(schema, message).shape)
    ]
    return any(each & SECRET_FIELDS or {"name", "value"} <= each for each in names)


def _redacted_frame(frame: Buffer) -> bytes:
    """The frame without its secrets; only its header if the message cannot be decoded."""
    header, message, _ = decode_request(frame)
    _, start = decode_request_header(memoryview(frame))
    head = bytes(frame[:start])
    if message is None:
        return head
    _empty_secrets(message)
    codec = request_codec(header.api_key, header.api_version)
    return b"".join((head, *codec.encode(message)))


def _redacted_body(entry: ResponseEntry) -> list[Buffer]:
    message = decode_response(entry)
    if message is None:
        return []
    _empty_secrets(message)
    return response_codec(entry.api_key, entry.api_version).encode(message)


def _empty_secrets(message: msgspec.Struct) -> None:
    hides_value = is_secret_config(getattr(message, "name", None))
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name in SECRET_FIELDS or (hides_value and name == "value"):
            if value:
                setattr(message, name, type(value)())
        elif isinstance(value, msgspec.Struct):
            _empty_secrets(value)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, msgspec.Struct):
                    _empty_secrets(each)
