"""Decompression into a buffer whose size is known beforehand to be enough, or is the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockbroker_protocol.records.errors import CompressionError, DecompressedTooLargeError

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer

_FIRST_TRY_BYTES_MIN = 64 * 1024
_FIRST_TRY_RATIO = 16


def decompress_bounded(
    function: Callable[[memoryview, bytearray], int],
    view: memoryview,
    bound: int,
    limit: int,
    name: str,
) -> Buffer:
    """Decompress into a buffer of a likely size, else of the greatest possible one within the
    limit.
    """
    from cramjam import DecompressionError

    likely = max(_FIRST_TRY_BYTES_MIN, _FIRST_TRY_RATIO * len(view))
    largest = min(bound, limit)
    size = min(likely, largest)
    while True:
        out = bytearray(size)
        try:
            written = function(view, out)
        except DecompressionError as error:
            if size < largest:
                size = largest
                continue
            if bound > limit:
                raise DecompressedTooLargeError(
                    0, f"{name}: corrupt, or more than {limit} bytes when decompressed"
                ) from None
            raise CompressionError(0, f"{name}: {error}") from None
        return memoryview(out)[:written]
