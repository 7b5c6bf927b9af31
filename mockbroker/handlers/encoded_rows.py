"""The bytes around the elements of an array: elements are encoded alone and joined later."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mockbroker_protocol.codec import Codec
from mockbroker_protocol.runtime import uvarint


def around(codec: Codec, response: Any, field: str) -> tuple[bytes, bytes]:
    """The bytes of a response before the count of the array `field`, and those behind the array.

    The array has one element. With none, the response is equal up to the last byte of the count.
    """
    with_one = b"".join(codec.encode(response))
    without = b"".join(codec.encode(replace(response, **{field: []})))
    end = next(i for i, byte in enumerate(without) if byte != with_one[i]) + 1
    return without[: end - len(array_count(0, flexible=codec.flexible))], without[end:]


def place_of_one(before: bytes, after: bytes, *, flexible: bool) -> slice:
    """Where the only element of an array is in a response, by the bytes around the array."""
    return slice(len(before) + len(array_count(1, flexible=flexible)), -len(after) or None)


def array_count(count: int, *, flexible: bool) -> bytes:
    """The encoded length of an array."""
    return uvarint(count + 1) if flexible else count.to_bytes(4, "big")
