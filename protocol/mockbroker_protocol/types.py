"""The Python types that stand for wire types in the generated structs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

Records: TypeAlias = bytes | bytearray | memoryview | Sequence[Buffer] | None
"""A `records` field. Decoded, it is None or a memoryview into the frame, not a copy. To be encoded,
it may be None, one buffer, or several whose bytes follow each other on the wire."""

UnknownTags: TypeAlias = dict[int, bytes] | None
"""Tagged fields that the declaration does not know, by tag (KIP-482); None when there were none."""

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


def parse_integer(text: str, low: int = -(1 << 31), high: int = (1 << 31) - 1) -> int | None:
    """The integer that a text is, from `low` to `high`, by default an int32; None for other text.

    Java's Integer.parseInt: decimal digits, perhaps behind a sign and zeros. Python's `int` takes
    more, and raises ValueError for some texts of digits alone.
    """
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if low <= number <= high else None


ZERO_UUID = bytes(16)
"""The uuid that means "none". Uuids are 16 raw bytes, most significant first."""
