"""Messages as plain data for people and JSON, without secrets and without payloads.

Records become a summary of their batches. Topic ids become text as Kafka writes them. Passwords,
salts, tokens and keys become `HIDDEN`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mockbroker.core.configs.secrets import HIDDEN, is_secret_config
from mockbroker.core.ids import uuid_text
from mockbroker_protocol.records import BatchHeader, RecordsError, split_batches
from mockbroker_protocol.types import Buffer

# Fields of these names are secrets in every message. An envelope may hold any request.
SECRET_FIELDS = frozenset(
    (
        "auth_bytes",
        "hmac",
        "request_data",
        "response_data",
        "salt",
        "salted_password",
        "stored_key",
        "server_key",
    )
)
_UUID_BYTES = 16


def plain(message: msgspec.Struct) -> dict[str, Any]:
    """The fields of a decoded message as dicts, lists, numbers and text."""
    shown: dict[str, Any] = {}
    hides_value = is_secret_config(getattr(message, "name", None))
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name == "unknown_tags" and value is None:
            continue
        if name in SECRET_FIELDS or (hides_value and name == "value"):
            shown[name] = HIDDEN if value else _value(name, value)
        else:
            shown[name] = _value(name, value)
    return shown


def _value(name: str, value: object) -> Any:
    match value:
        case msgspec.Struct():
            return plain(value)
        case list() | tuple() if name != "records":
            return [_value(name, each) for each in value]
        case dict():
            return {str(key): _value(name, each) for key, each in value.items()}
        case bytes() | bytearray() | memoryview() | list():
            return _binary(name, value)
        case _:
            return value


def _binary(name: str, value: Any) -> object:
    if name == "records":
        return batches(value)
    if len(value) == _UUID_BYTES and name.endswith(("id", "ids")):
        return uuid_text(bytes(value))
    return bytes(value).hex()


def batches(records: Buffer | list[Buffer] | None) -> list[dict[str, Any]] | None:
    """One dict for each whole batch of a records field."""
    if records is None:
        return None
    pieces = records if isinstance(records, list) else [records]
    found: list[dict[str, Any]] = []
    for piece in pieces:
        try:
            found.extend(_summary(header, len(batch)) for header, batch in split_batches(piece))
        except RecordsError as error:
            found.append({"bytes": len(piece), "unreadable": str(error)})
    return found


def _summary(header: BatchHeader, size: int) -> dict[str, Any]:
    return {
        "base_offset": header.base_offset,
        "last_offset_delta": header.last_offset_delta,
        "count": header.count,
        "bytes": size,
        "codec": header.codec,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }
