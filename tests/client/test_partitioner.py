from __future__ import annotations

import pytest

from mockbroker.client.partitioner import murmur2, partition_of

# Signed, as Java prints them.
HASHES = {
    b"": 275646681,
    b"a": -1563381124,
    b"21": -973932308,
    b"key": -1079937367,
    b"foobar": -790332482,
    b"kafka": -798503068,
}


@pytest.mark.parametrize(("data", "expected"), HASHES.items())
def test_murmur2_gives_java_s_hashes(data, expected):
    assert murmur2(data) == expected & 0xFFFFFFFF


@pytest.mark.parametrize(("key", "partition"), [(b"haha", 0), (b"hehe", 1), (b"eeee", 3)])
def test_keys_go_where_java_s_producer_sends_them(key, partition):
    assert partition_of(key, 4) == partition


def test_integer_keys_go_where_java_s_producer_sends_them():
    keys = [number.to_bytes(4, "big") for number in range(8)]
    assert [partition_of(key, 4) for key in keys] == [0, 0, 3, 3, 3, 2, 3, 3]
