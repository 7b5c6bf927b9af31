"""Hash codes of Java: String.hashCode, which decides the partitions of groups and transactional
ids, and that of Kafka's Uuid.
"""

from __future__ import annotations

import array
import sys
from functools import lru_cache
from struct import Struct

CACHED_MAX = 4096
# Kafka's names have at most 249 characters; ids that clients choose may have 32 Ki.
CACHED_CHARS_MAX = 256
_SIGN_32 = 0x80000000
_MASK_32 = 0xFFFFFFFF
_TWO_INT64 = Struct(">QQ")


def string_hash(text: str) -> int:
    """`java.lang.String.hashCode`: a signed 32-bit hash over UTF-16 code units.

    A character outside the basic plane is two surrogates, as in Java. Cached for texts that are not
    very long, because each request of a group or a transaction needs it.
    """
    return _cached_hash(text) if len(text) <= CACHED_CHARS_MAX else _hash(text)


def _hash(text: str) -> int:
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


_cached_hash = lru_cache(maxsize=CACHED_MAX)(_hash)


def uuid_hash(uuid: bytes) -> int:
    """Kafka's `Uuid.hashCode` of a 16-byte id, without a sign."""
    high, low = _TWO_INT64.unpack(uuid)
    both: int = high ^ low
    return (both >> 32) ^ (both & _MASK_32)


def coordinator_partition(key: str, partitions: int) -> int:
    """The partition of `key` in an internal topic with so many partitions.

    Kafka's Utils.abs returns 0 for -2**31, which has no positive counterpart.
    """
    value = string_hash(key)
    return 0 if value == -_SIGN_32 else abs(value) % partitions
