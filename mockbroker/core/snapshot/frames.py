"""Frames: how changes lie in a file, and how to tell that they are what was written.

A file begins with a mark and the version of its format. Each frame is a header (sizes of head and
body, checksum of both, checksum of the header itself), a head, and a body of raw bytes. The header
has a checksum of its own so that a damaged size is not taken for a file that ends early: what was
cut off by a crash in the middle of a write, and what was damaged later, are different things.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

MAGIC = b"mockbroker\r\n"
VERSION = 1
FILE_HEADER = struct.Struct(">12sI")
FRAME_HEADER = struct.Struct(">IQI")
_CHECKSUM = struct.Struct(">I")
FRAME_HEADER_BYTES = FRAME_HEADER.size + _CHECKSUM.size
ZEROS_PER_READ = 1 << 20


class FormatError(Exception):
    """The file is none of ours, or of a format that this release does not know."""


class DamageError(Exception):
    """A file is not as it was written, from byte `offset` on."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"byte {offset}: {reason}")
        self.offset = offset
        self.reason = reason


class Frame(NamedTuple):
    """A frame that is whole, and where it lies in its file."""

    offset: int
    end: int
    head: bytes
    body: bytes


class Readable(Protocol):
    """A file, or bytes that are read as if from one."""

    def read(self, size: int, /) -> bytes: ...


def file_header() -> bytes:
    """What a file begins with."""
    return FILE_HEADER.pack(MAGIC, VERSION)


def frame(head: bytes, body: Sequence[memoryview]) -> list[bytes | memoryview]:
    """The pieces of one frame, to be written one after the other."""
    size, checksum = 0, zlib.crc32(head)
    for piece in body:
        size += len(piece)
        checksum = zlib.crc32(piece, checksum)
    header = FRAME_HEADER.pack(len(head), size, checksum)
    return [header + _CHECKSUM.pack(zlib.crc32(header)) + head, *body]


def check_file_header(source: Readable) -> int:
    """Read a file's beginning; how long it is. Raises FormatError."""
    found = source.read(FILE_HEADER.size)
    if len(found) < FILE_HEADER.size or not found.startswith(MAGIC):
        raise FormatError("this is not a snapshot of mockbroker")
    version: int = FILE_HEADER.unpack(found)[1]
    if version != VERSION:
        raise FormatError(
            f"this is of format {version}, and this release of mockbroker knows only {VERSION}"
        )
    return FILE_HEADER.size


def read_frames(source: Readable, offset: int, file_bytes: int) -> Iterator[Frame]:
    """The frames of a file of `file_bytes`, of which `offset` have been read.

    Ends at the end of the file, or before a frame that was never written to its end. Raises
    DamageError.
    """
    while offset < file_bytes:
        start = offset + FRAME_HEADER_BYTES
        header = source.read(FRAME_HEADER_BYTES)
        if len(header) < FRAME_HEADER_BYTES:
            return
        (checksum,) = _CHECKSUM.unpack_from(header, FRAME_HEADER.size)
        if zlib.crc32(header[: FRAME_HEADER.size]) != checksum:
            if not header.strip(b"\0") and _is_zero(source):
                return  # space that the file was given, but no data (a power failure does that)
            raise DamageError(offset, "a frame's header does not match its checksum")
        head_bytes, body_bytes, checksum = FRAME_HEADER.unpack_from(header)
        end = start + head_bytes + body_bytes
        if end > file_bytes:
            return
        head = source.read(head_bytes)
        body = source.read(body_bytes)
        if zlib.crc32(body, zlib.crc32(head)) != checksum:
            raise DamageError(offset, "a frame does not match its checksum")
        yield Frame(offset, end, head, body)
        offset = end


def _is_zero(source: Readable) -> bool:
    while chunk := source.read(ZEROS_PER_READ):
        if chunk.strip(b"\0"):
            return False
    return True
