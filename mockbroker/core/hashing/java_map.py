"""The order of keys in a `java.util.HashMap`, in which Kafka writes some lists of a response."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import TypeVar

K = TypeVar("K")
_TWO_INT64 = Struct(">QQ")
_MASK_32 = 0xFFFFFFFF


def uuid_hash(uuid: bytes) -> int:
    """Kafka's `Uuid.hashCode` of a 16-byte id, without a sign."""
    high, low = _TWO_INT64.unpack(uuid)
    both: int = high ^ low
    return (both >> 32) ^ (both & _MASK_32)


def hash_map_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Distinct keys, given in the order of insertion, as a HashMap iterates over them.

    A map has 16 buckets at first, and twice as many each time it is three quarters full. Keys of
    one bucket keep their order.
    """
    keys = list(keys)
    buckets = 16
    while len(keys) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: K) -> int:
        value = hash_of(key) & _MASK_32
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(keys, key=bucket)
