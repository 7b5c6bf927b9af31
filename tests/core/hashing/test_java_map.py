"""The order of Java's hash maps."""

from __future__ import annotations

from mockbroker.core.hashing.java_map import hash_map_order, uuid_hash


def test_numbers_are_in_the_order_of_their_buckets() -> None:
    assert hash_map_order([5, 3, 16, 0, 35], int) == [16, 0, 3, 35, 5]
    assert hash_map_order(reversed(range(30)), int) == list(range(30))


def test_a_negative_number_is_spread() -> None:
    """-1 ^ -1 >>> 16 ends in zeros."""
    assert hash_map_order([3, -1], int) == [-1, 3]


def test_a_uuid_hashes_as_in_kafka() -> None:
    """`new Uuid(1L << 32 | 2, 4L).hashCode()` is 1 ^ 6."""
    assert uuid_hash((1 << 32 | 2).to_bytes(8, "big") + (4).to_bytes(8, "big")) == 7
