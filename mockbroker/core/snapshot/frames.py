"""The format of a file of frames, with checksums that detect damage.

A file begins with a mark and the version of its format. Each frame is a header (mark, sizes of head
and body, checksum of both, checksum of the header itself), a head, and a body of raw bytes.

A file that a crash has cut off differs from one that was damaged later. Files only grow, so a crash
leaves whole sectors of zeros, or an early end, where something had not reached the disk yet. What
was written after that may be there. Therefore each header also says how much of the file was
*synced* when the frame was written: that was on the disk, and if it is not as it was written, it is
damaged.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

MAGIC = b"mockbroker\r\n"
VERSION = 3
FILE_HEADER = struct.Struct(">12sI")
FRAME_MARK = b"\xf5mb\xf6"
# Mark, size of the head, size of the body, synced bytes of the file, checksum of head and body.
FRAME_HEADER = struct.Struct(">4sIQQI")
_CHECKSUM = struct.Struct(">I")
FRAME_HEADER_BYTES = FRAME_HEADER.size + _CHECKSUM.size
SECTOR_BYTES = 512  # the smallest unit that a disk writes as a whole
SEARCH_BYTES = 1 << 20


class FormatError(Exception):
    """The file is not a snapshot, or has a format that this release does not support."""


class DamageError(Exception):
    """A file is damaged from byte `offset` on."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"byte {offset}: {reason}")
        self.offset = offset
        self.reason = reason


class Frame(NamedTuple):
    """A whole frame and its position in the file."""

    offset: int
    end: int
    head: bytes
    body: bytes


class Readable(Protocol):
    """A file, or a buffer with the interface of one."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, /) -> int: ...


def file_header() -> bytes:
    """The first bytes of a file."""
    return FILE_HEADER.pack(MAGIC, VERSION)


def frame(
    head: bytes, body: Sequence[memoryview], synced_bytes: int = 0
) -> list[bytes | memoryview]:
    """The pieces of one frame, to be written one after the other.

    The disk has `synced_bytes` of the file.
    """
    size, checksum = 0, zlib.crc32(head)
    for piece in body:
        size += len(piece)
        checksum = zlib.crc32(piece, checksum)
    header = FRAME_HEADER.pack(FRAME_MARK, len(head), size, synced_bytes, checksum)
    return [header + _CHECKSUM.pack(zlib.crc32(header)) + head, *body]


def check_file_header(source: Readable) -> int:
    """Read the file header; returns its size. Raises FormatError."""
    found = source.read(FILE_HEADER.size)
    if len(found) < FILE_HEADER.size or not found.startswith(MAGIC):
        raise FormatError("this is not a snapshot of mockbroker")
    version: int = FILE_HEADER.unpack(found)[1]
    if version != VERSION:
        raise FormatError(
            f"the format is {version}; this release of mockbroker supports only {VERSION}"
        )
    return FILE_HEADER.size


def read_frames(source: Readable, offset: int, file_bytes: int) -> Iterator[Frame]:
    """The frames of a file of `file_bytes`, of which `offset` have been read.

    Ends at the end of the file, or before a frame that a crash kept from the disk. Raises
    DamageError.
    """
    while offset < file_bytes:
        data = source.read(FRAME_HEADER_BYTES)
        if len(data) < FRAME_HEADER_BYTES:
            return
        if _is_header(data):
            _, head_bytes, body_bytes, _, checksum = FRAME_HEADER.unpack_from(data)
            end = offset + FRAME_HEADER_BYTES + head_bytes + body_bytes
            if end > file_bytes:
                return
            head, body = source.read(head_bytes), source.read(body_bytes)
            if zlib.crc32(body, zlib.crc32(head)) == checksum:
                yield Frame(offset, end, head, body)
                offset = end
                continue
            data += head + body
            behind, reason = end, "a frame does not match its checksum"
        else:
            behind, reason = offset + 1, "a frame's header does not match its checksum"
        if _has_empty_sector(data, offset) and _synced_bytes(source, behind) <= offset:
            return
        raise DamageError(offset, reason)


def _is_header(data: bytes) -> bool:
    (checksum,) = _CHECKSUM.unpack_from(data, FRAME_HEADER.size)
    return data.startswith(FRAME_MARK) and zlib.crc32(data[: FRAME_HEADER.size]) == checksum


def _has_empty_sector(data: bytes, offset: int) -> bool:
    """Whether the part of some sector that lies in `data` is zeros; `data` begins at `offset`."""
    begin = 0
    while begin < len(data):
        end = min(begin + SECTOR_BYTES - (offset + begin) % SECTOR_BYTES, len(data))
        if data.count(0, begin, end) == end - begin:
            return True
        begin = end
    return False


def _synced_bytes(source: Readable, position: int) -> int:
    """How much of the file was on the disk by what the frames from `position` on say."""
    found = 0
    source.seek(position)
    data = b""
    while chunk := source.read(SEARCH_BYTES):
        data += chunk
        at = data.find(FRAME_MARK)
        while at >= 0 and len(data) - at >= FRAME_HEADER_BYTES:
            if _is_header(data[at : at + FRAME_HEADER_BYTES]):
                found = max(found, FRAME_HEADER.unpack_from(data, at)[3])
            at = data.find(FRAME_MARK, at + 1)
        data = data[at:] if at >= 0 else data[-len(FRAME_MARK) :]
    return found
