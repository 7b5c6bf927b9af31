"""The hash of a record's key and value in tables.

BLAKE2b over four things: the length of the key as a signed 32-bit integer (big-endian; -1 for a
null), the key, the length of the value likewise, the value. The first 8 bytes of the digest are the
hash, as a signed big-endian integer. Equal records have equal hashes in any program.
"""

from __future__ import annotations

from hashlib import blake2b

HASH_BYTES = 8
NULL = b"\xff\xff\xff\xff"


def prefixed(data: bytes | None) -> bytes:
    """A key or value with its length before it."""
    return NULL if data is None else len(data).to_bytes(4, "big") + data


def value_hash(key: bytes | None, value: bytes | None) -> int:
    """The hash of a record's key and value."""
    return _number(blake2b(prefixed(key) + prefixed(value)).digest())


def key_hash(key: bytes | None) -> int | None:
    """The hash of a key alone; None without a key."""
    return None if key is None else _number(blake2b(prefixed(key)).digest())


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:HASH_BYTES], "big", signed=True)
