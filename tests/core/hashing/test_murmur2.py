"""Keys land where Java's default partitioner puts them."""

from __future__ import annotations

import pytest

from mockbroker.core.hashing.murmur2 import murmur2, murmur2_partition


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
        (b"a", -1563381124),
        (b"key", -1079937367),
        (b"kafka", -798503068),
    ],
)
def test_hashes_equal_those_that_kafka_tests_itself_by(key: bytes, expected: int) -> None:
    """The first vectors are those of Kafka's own UtilsTest, the others Java's results."""
    assert murmur2(key) == expected


def test_keys_are_placed_as_the_java_producer_places_them() -> None:
    """Three words on four partitions, and integer keys as Java's IntegerSerializer writes them."""
    assert [murmur2_partition(key, 4) for key in (b"haha", b"hehe", b"eeee")] == [0, 1, 3]
    integers = [murmur2_partition(i.to_bytes(4, "big"), 4) for i in range(8)]
    assert integers == [0, 0, 3, 3, 3, 2, 3, 3]
