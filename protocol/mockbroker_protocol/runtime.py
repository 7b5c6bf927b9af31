"""Functions for the rare cases of emitted codecs, so that their own source has the common case.

Imports little: an emitted codec must not need `construct`.
"""

from __future__ import annotations

import re
from itertools import starmap
from struct import Struct, pack, unpack_from

from mockbroker_protocol.types import Buffer

STRING_BYTES_MAX = 32767
BUFFERS = frozenset((bytes, bytearray, memoryview))
BYTE = tuple(bytes((value,)) for value in range(128))
"""The one-byte unsigned varints."""

INT32_ARRAYS = (
    Struct(">B").pack,
    *(Struct(f">B{count}i").pack for count in range(24)),
)
"""Packers of compact arrays of int32, by the size on the wire: the count plus one, 0 for null."""

__all__ = ["BUFFERS", "BYTE", "pack", "starmap", "unpack_from"]


class Refused(ValueError):  # noqa: N818
    """The emitted codec stops; construct then finds the reason."""


class Exceeded(Exception):  # noqa: N818
    """A message has more elements than the caller allows: `name` is the array, `pos` its first."""

    def __init__(self, name: str, pos: int) -> None:
        super().__init__(name, pos)
        self.name = name
        self.pos = pos


def java_text(data: Buffer) -> str:
    """Decode as Java's `new String(bytes, UTF_8)`: one U+FFFD for each malformed sequence.

    Python would put three for an encoded surrogate, Java puts one.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        whole = re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]", b"\xef\xbf\xbd", data)
        return whole.decode("utf-8", "replace")


def as_int32(value: int) -> int:
    """The Java int with the low 32 bits of `value`."""
    return ((value + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def as_int64(value: int) -> int:
    """The Java long with the low 64 bits of `value`."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read an unsigned varint as a Java int; returns it and the position after it."""
    value = buf[pos]
    pos += 1
    if value < 0x80:
        return value, pos
    return _read_rest(buf, pos, value)


def _read_rest(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return as_int32(value), pos
    raise Refused


def long_size(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """Go on reading a compact length of which `first` was read; 0 stands for every negative one."""
    value, pos = _read_rest(buf, pos, first)
    if value == -0x8000_0000:  # minus one wraps to the largest int, as in Java
        return 0x8000_0000, pos
    return max(value, 0), pos


def long_count(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """Go on reading a number of tagged fields; a negative one counts as none."""
    value, pos = _read_rest(buf, pos, first)
    return max(value, 0), pos


def long_string(buf: Buffer, pos: int, first: int) -> tuple[str, int]:
    """Read a compact string whose length does not fit one byte, or is null."""
    text, pos = long_nullable_string(buf, pos, first)
    if text is None:
        raise Refused
    return text, pos


def long_nullable_string(buf: Buffer, pos: int, first: int) -> tuple[str | None, int]:
    size = first
    if first > 127:
        size, pos = long_size(buf, pos, first)
    if size == 0:
        return None, pos
    if size > STRING_BYTES_MAX + 1:
        raise Refused
    stop = pos + size - 1
    return java_text(buf[pos:stop]), stop


def unknown_tags(buf: Buffer, pos: int, count: int) -> tuple[dict[int, bytes] | None, int]:
    """Read a tagged section whose count's first byte was read and of which no tag is known."""
    if count > 127:
        count, pos = _read_rest(buf, pos, count)
    return read_unknown_tags(buf, pos, count)


def read_unknown_tags(buf: Buffer, pos: int, count: int) -> tuple[dict[int, bytes] | None, int]:
    """Read `count` tagged fields of which none is known."""
    unknown: dict[int, bytes] | None = None
    for _ in range(count):
        tag, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
        unknown, pos = keep_tag(buf, pos, tag, size, unknown)
    return unknown, pos


def keep_tag(
    buf: Buffer, pos: int, tag: int, size: int, unknown: dict[int, bytes] | None
) -> tuple[dict[int, bytes], int]:
    """Put the body of an unknown tagged field away."""
    stop = pos + size
    if size < 0 or stop > len(buf):
        raise Refused
    if unknown is None:
        unknown = {}
    unknown[tag] = bytes(buf[pos:stop])
    return unknown, stop


def uvarint(value: int) -> bytes:
    """Encode 0 ≤ value < 2³¹ as an unsigned varint."""
    if not 0 <= value < 0x8000_0000:
        raise Refused
    return _unsigned(value)


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string_length(size: int) -> bytes:
    """The compact length of a string of `size - 1` bytes."""
    if size > STRING_BYTES_MAX + 1:
        raise Refused
    return uvarint(size)


def tag_section(bodies: dict[int, bytes]) -> bytes:
    """The bytes of a tagged section with these fields, in the order of their tags.

    A tag of 32 bits is read as a negative number, as in Java, and written as it was.
    """
    out = [uvarint(len(bodies))]
    for tag, body in sorted(bodies.items()):
        out += (_unsigned(tag & 0xFFFF_FFFF), uvarint(len(body)), body)
    return b"".join(out)


def known_free(unknown: dict[int, bytes] | None, known: set[int]) -> dict[int, bytes]:
    """A copy of the unknown tags of a struct, refused if one of them is known after all."""
    if not unknown:
        return {}
    if known.intersection(unknown):
        raise Refused
    return dict(unknown)
