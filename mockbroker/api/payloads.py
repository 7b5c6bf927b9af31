"""Keys, values and the values of headers, as tests give them."""

from __future__ import annotations

from typing import TypeAlias

Payload: TypeAlias = bytes | str | None


def as_bytes(payload: Payload, path: str) -> bytes | None:
    """Text as UTF-8. Raises TypeError, with the path of the payload, for other types."""
    if isinstance(payload, str):
        return payload.encode()
    if payload is None or isinstance(payload, bytes):
        return payload
    raise TypeError(f"{path}: expected bytes | str | None, not {type(payload).__name__}")
