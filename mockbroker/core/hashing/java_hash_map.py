"""The iteration order of java.util.HashMap, where a result of Kafka depends on it: as a map, and as
functions that sort keys.

Buckets come in their order; keys of one bucket in the order in which they were added, but those of
`compute_if_absent` before all others. The table doubles above a load of three quarters and never
shrinks. Java turns a bucket of eight keys of a large table into a tree, which may change the order
inside the bucket; this map does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MASK_32 = 0xFFFFFFFF
_BUCKETS_MIN = 16


class JavaHashMap(MutableMapping[K, V], Generic[K, V]):
    """`hash_of` is the hashCode of a key. Iteration sees the keys of its beginning: they may be
    removed meanwhile.
    """

    __slots__ = ("_buckets", "_computed", "_hash_of", "_size", "_table")

    def __init__(self, hash_of: Callable[[K], int], capacity: int = _BUCKETS_MIN) -> None:
        """`capacity` is the constructor's argument in Java, rounded up to a power of two."""
        self._hash_of = hash_of
        self._buckets = 1 << max(capacity - 1, 0).bit_length()
        self._size = 0
        self._table: dict[int, dict[K, V]] = {}
        # The keys of `compute_if_absent`, by bucket: the newest is last here and comes first.
        # Clients choose how many share a bucket, so a new key must not move the others.
        self._computed: dict[int, dict[K, V]] = {}

    def __getitem__(self, key: K) -> V:
        return self._part(key)[key]

    def __setitem__(self, key: K, value: V) -> None:
        part = self._part(key)
        self._size += key not in part
        part[key] = value
        if self._is_full():
            self._double()

    def _part(self, key: K) -> dict[K, V]:
        """The part of the key's bucket that has it, or would have it."""
        index = self._bucket(key)
        computed = self._computed.get(index)
        if computed is not None and key in computed:
            return computed
        return self._table.setdefault(index, {})

    def compute_if_absent(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key; a new one comes first in its bucket, in a table that grows only with
        the next key.
        """
        part = self._part(key)
        if key in part:
            return part[key]
        if self._is_full():
            self._double()
        value = make()
        self._computed.setdefault(self._bucket(key), {})[key] = value
        self._size += 1
        return value

    def _is_full(self) -> bool:
        return self._size * 4 > self._buckets * 3

    def __delitem__(self, key: K) -> None:
        del self._part(key)[key]
        self._size -= 1

    def __iter__(self) -> Iterator[K]:
        return iter([key for key, _ in self._entries()])

    def _entries(self) -> Iterator[tuple[K, V]]:
        for index in sorted(self._table.keys() | self._computed.keys()):
            yield from reversed(self._computed.get(index, {}).items())
            yield from self._table.get(index, {}).items()

    def __len__(self) -> int:
        return self._size

    def _bucket(self, key: K) -> int:
        return _spread(self._hash_of(key)) & (self._buckets - 1)

    def _double(self) -> None:
        former = list(self._entries())
        self._buckets *= 2
        self._table, self._computed = {}, {}
        for key, value in former:
            self._table.setdefault(self._bucket(key), {})[key] = value


class JavaHashSet(Generic[K]):
    """A java.util.HashSet, see `JavaHashMap`."""

    __slots__ = ("_keys",)

    def __init__(
        self,
        hash_of: Callable[[K], int],
        keys: Iterable[K] = (),
        capacity: int = _BUCKETS_MIN,
    ) -> None:
        self._keys: JavaHashMap[K, None] = JavaHashMap(hash_of, capacity)
        for key in keys:
            self.add(key)

    def add(self, key: K) -> None:
        self._keys[key] = None

    def discard(self, key: K) -> None:
        self._keys.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def capacity_for(count: int) -> int:
    """The capacity with which Kafka's AssignorHelpers makes a map for `count` keys."""
    return int((count + 1) / 0.75 + 1)


def hash_order(
    keys: Iterable[K], hash_of: Callable[[K], int], buckets: int = _BUCKETS_MIN
) -> list[K]:
    """Keys in the iteration order of a java.util.HashMap to which they were added one by one.

    Keys of one bucket keep their order in `keys`. `buckets` is the size of the map's first table.
    """
    known = list(keys)
    while len(known) > buckets * 3 // 4:
        buckets *= 2
    return _by_bucket(known, hash_of, buckets)


def hash_set_order(keys: Iterable[int]) -> list[int]:
    """Integers in the iteration order of a java.util.HashSet that was made from a collection.

    Its table may be larger than that of a set to which they were added one by one. Keys of one
    bucket are in ascending order here; in Java the first assigned key is first.
    """
    known = sorted(keys)
    buckets = _BUCKETS_MIN
    while int(len(known) / 0.75) + 1 > buckets:
        buckets *= 2
    return _by_bucket(known, lambda key: key, buckets)


def _by_bucket(keys: Iterable[K], hash_of: Callable[[K], int], buckets: int) -> list[K]:
    return sorted(keys, key=lambda key: _spread(hash_of(key)) & (buckets - 1))


def _spread(code: int) -> int:
    """HashMap.hash: the upper half of a hash code is mixed into the lower."""
    code &= _MASK_32
    return code ^ (code >> 16)
