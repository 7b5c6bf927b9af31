"""The Python types that stand for wire types in the generated structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

Records: TypeAlias = bytes | bytearray | memoryview | Sequence[Buffer] | None
"""A `records` field. Decoded, it is None or a memoryview into the frame, not a copy. To be encoded,
it may be None, one buffer, or several whose bytes follow each other on the wire."""

UnknownTags: TypeAlias = dict[int, bytes] | None
"""Tagged fields that the declaration does not know, by tag (KIP-482); None when there were none."""

ZERO_UUID = bytes(16)
"""The uuid that means "none". Uuids are 16 raw bytes, most significant first."""
