"""The bytes around the elements of an array: elements are encoded alone and joined later."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from msgspec.structs import replace

from mockbroker.handlers.base import EncodedResponse
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


def place_of(count: int, before: bytes, after: bytes, *, flexible: bool) -> slice:
    """Where the elements of an array are in a response, by the bytes around the array."""
    return slice(len(before) + len(array_count(count, flexible=flexible)), -len(after) or None)


def encode_in_slices(
    codec: Codec, response: Any, field: str, size: int
) -> Generator[None, None, EncodedResponse]:
    """Encode a response whose array `field` is not empty, `size` elements in a slice."""
    rows: list[Any] = getattr(response, field)
    before, after = around(codec, replace(response, **{field: rows[:1]}), field)
    parts = [before + array_count(len(rows), flexible=codec.flexible)]
    for start in range(0, len(rows), size):
        yield
        some = rows[start : start + size]
        encoded = b"".join(codec.encode(replace(response, **{field: some})))
        parts.append(encoded[place_of(len(some), before, after, flexible=codec.flexible)])
    parts.append(after)
    return EncodedResponse(parts, getattr(response, "throttle_time_ms", 0))


def array_count(count: int, *, flexible: bool) -> bytes:
    """The encoded length of an array."""
    return uvarint(count + 1) if flexible else count.to_bytes(4, "big")
