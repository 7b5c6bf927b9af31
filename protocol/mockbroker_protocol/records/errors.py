"""Errors of invalid records. Every error has the place and the reason."""

from __future__ import annotations


class RecordsError(ValueError):
    """Bytes that are no valid records.

    `byte` is the position in the buffer (for records inside a compressed batch: in the decompressed
    payload); `reason` is one clause.
    """

    def __init__(self, byte: int, reason: str) -> None:
        super().__init__(byte, reason)
        self.byte = byte
        self.reason = reason

    def __str__(self) -> str:
        return f"byte {self.byte}: {self.reason}"


class CorruptBatchError(RecordsError):
    """A batch whose size or checksum is wrong (Kafka's CorruptRecordException, error 2)."""


class InvalidRecordError(RecordsError):
    """A record inside an intact batch that breaks the format (InvalidRecordException, error 87)."""


class TooManyHeadersError(InvalidRecordError):
    """Records of one batch with more headers than are read."""


class UnsupportedMagicError(RecordsError):
    """A batch of an unsupported message format."""

    def __init__(self, byte: int, magic: int) -> None:
        super().__init__(byte, f"magic {magic}")
        self.magic = magic


class CompressionError(RecordsError):
    """A compressed payload that cannot be decompressed, or not within the limit."""


class DecompressedTooLargeError(CompressionError):
    """A compressed payload of more than the allowed blocks, or bytes when decompressed."""


BLOCKS_MAX = 10_000
"""The blocks of a compressed payload: gzip members, frames, and what they consist of. A payload of
32 MiB has at most a thousand; a byte a block would take half a second a MiB.
"""


def check_blocks(count: int, byte: int) -> None:
    """Raise DecompressedTooLargeError at the `count`th block if it is one too many."""
    if count > BLOCKS_MAX:
        raise DecompressedTooLargeError(byte, f"more than {BLOCKS_MAX} compressed blocks")


def too_large(limit: int) -> DecompressedTooLargeError:
    """The error for a payload that would exceed `limit` bytes when decompressed."""
    return DecompressedTooLargeError(0, f"more than {limit} bytes when decompressed")
