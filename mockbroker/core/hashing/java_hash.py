"""Java's String.hashCode, by which Kafka places groups and transactional ids on partitions."""

from __future__ import annotations

import array
import sys
from functools import lru_cache

REMEMBERED_MAX = 4096
_SIGN_32 = 0x80000000
_MASK_32 = 0xFFFFFFFF


@lru_cache(maxsize=REMEMBERED_MAX)
def string_hash(text: str) -> int:
    """`java.lang.String.hashCode`: a signed 32-bit hash over UTF-16 code units.

    A character outside the basic plane counts as its two surrogates, as in Java. Remembered,
    because every request of a group or a transaction asks for its partition anew.
    """
    if text.isascii():
        units: bytes | array.array[int] = text.encode("ascii")
    else:
        units = array.array("H", text.encode("utf-16-le", "surrogatepass"))
        if sys.byteorder == "big":
            units.byteswap()
    value = 0
    for unit in units:
        value = (31 * value + unit) & _MASK_32
    return value - (_MASK_32 + 1) if value & _SIGN_32 else value


def coordinator_partition(key: str, partitions: int) -> int:
    """The partition of an internal topic with `partitions` partitions that owns `key`.

    Kafka's Utils.abs maps the one value that has no positive counterpart, -2**31, to 0; masking the
    sign bit instead, as other placements do, would send half of all keys elsewhere.
    """
    value = string_hash(key)
    return 0 if value == -_SIGN_32 else abs(value) % partitions
