"""Groups are placed where Kafka places them: Java's hash, Kafka's abs."""

from __future__ import annotations

import pytest

from mockbroker.core.hashing.java_hash import coordinator_partition, string_hash, uuid_hash
from tests.support.traced import traced


@pytest.mark.parametrize(
    ("text", "hash_code", "partition"),
    [
        ("", 0, 0),
        ("my-group", -1906497762, 12),
        ("test-group", 627841412, 12),
        ("connect-cluster", 1440343063, 13),
        ("polygenelubricants", -2147483648, 0),
        ("größe", 98762257, 7),
        ("😀", 1772899, 49),
    ],
)
def test_hashes_of_names(text: str, hash_code: int, partition: int) -> None:
    """The hash runs over UTF-16 code units and wraps to 32 bits; its absolute value is divided."""
    assert string_hash(text) == hash_code
    assert coordinator_partition(text, 50) == partition


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("group-24", 10),
        ("group-101", 10),
        ("group-36", 43),
        ("group-81", 43),
        ("cg1", 31),
        ("test", 48),
        ("my-group-id", 12),
        ("consumer-tutorial-group", 37),
        ("consumerGroup1", 6),
        ("jinx_01", 5),
    ],
)
def test_groups_of_the_books(group: str, partition: int) -> None:
    """Group names whose partition is printed somewhere."""
    assert coordinator_partition(group, 50) == partition


def test_masking_the_sign_would_place_groups_elsewhere() -> None:
    """Kafka takes the absolute value; the other common way gives other partitions."""
    for group, kafka, masked in (("jinx_01", 5, 43), ("TEST-SZL", 4, 44)):
        assert coordinator_partition(group, 50) == kafka
        assert (string_hash(group) & 0x7FFFFFFF) % 50 == masked


def test_a_uuid_hashes_as_in_kafka() -> None:
    """`new Uuid(1L << 32 | 2, 4L).hashCode()` is 1 ^ 6."""
    assert uuid_hash((1 << 32 | 2).to_bytes(8, "big") + (4).to_bytes(8, "big")) == 7
    assert uuid_hash(bytes(range(16))) == 0x08080808 ^ 0x08080808


def test_long_names_are_not_kept() -> None:
    with traced() as memory:
        for number in range(100):
            string_hash(f"{number:032000}")
    assert memory.kept < 1 << 20
