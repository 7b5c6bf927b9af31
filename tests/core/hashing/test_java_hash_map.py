"""A map that iterates as java.util.HashMap does, as far as its buckets go."""

from __future__ import annotations

import pytest

from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import (
    JavaHashMap,
    JavaHashSet,
    capacity_for,
    hash_order,
    hash_set_order,
)
from tests.support.cpu_limit import cpu_limit


def own(key: int) -> int:
    return key


def test_keys_come_by_their_bucket() -> None:
    """17 and 33 are in bucket 1 of 16; the upper half of a hash is mixed into the lower."""
    assert list(JavaHashSet(own, [33, 3, 17, 1 << 16])) == [33, 17, 1 << 16, 3]


def test_the_table_doubles_above_three_quarters_and_never_shrinks() -> None:
    keys = JavaHashSet(own, [20, 4])
    assert list(keys) == [20, 4]
    for key in range(5, 15):
        keys.add(key)
    assert list(keys)[:2] == [20, 4]
    keys.add(15)
    assert next(iter(keys)) == 4
    for key in range(5, 16):
        keys.discard(key)
    assert list(keys) == [4, 20]


def test_a_capacity_is_rounded_up_to_a_power_of_two() -> None:
    assert capacity_for(20) == 29
    assert list(JavaHashSet(own, [20, 4], capacity_for(20))) == [4, 20]


def test_computed_and_added_keys_of_one_bucket() -> None:
    table: JavaHashMap[int, int] = JavaHashMap(own)
    table[1] = 0
    for key in (17, 33):
        table.compute_if_absent(key, lambda: 7)
    table[49] = 0
    table[17] = 8
    assert list(table.items()) == [(33, 7), (17, 8), (1, 0), (49, 0)]
    del table[33]
    assert list(table) == [17, 1, 49]
    assert table.compute_if_absent(49, lambda: 9) == 0


def test_keys_that_share_a_bucket_are_no_more_work() -> None:
    """A client chooses the numbers of its partitions. Each key moved all others: 1.2 billion."""
    table: JavaHashMap[int, None] = JavaHashMap(own)
    keys = [number << 16 | number for number in range(50_000)]
    with cpu_limit(5.0, AssertionError("each key moves the others")):
        for key in keys:
            table.compute_if_absent(key, lambda: None)
    assert len(table) == len(keys)


def test_it_is_a_map() -> None:
    table: JavaHashMap[int, str] = JavaHashMap(own)
    table[1] = "a"
    table[17] = "b"
    table[1] = "c"
    assert (len(table), table[1], table.get(2)) == (2, "c", None)
    assert list(table.items()) == [(1, "c"), (17, "b")]
    del table[1]
    assert 1 not in table
    with pytest.raises(KeyError):
        del table[1]


def test_a_computed_key_comes_first_in_its_bucket_and_grows_the_table_late() -> None:
    table: JavaHashMap[int, int] = JavaHashMap(own)
    for key in (4, 20, *range(5, 16)):
        assert table.compute_if_absent(key, lambda: 7) == 7
    assert list(table)[:2] == [20, 4]
    assert table.compute_if_absent(20, lambda: 8) == 7
    table.compute_if_absent(3, lambda: 7)
    assert list(table)[:2] == [3, 4]


def test_keys_may_be_removed_while_they_are_visited() -> None:
    keys = JavaHashSet(own, range(5))
    for key in keys:
        keys.discard(key)
    assert len(keys) == 0


def test_strings_come_in_the_order_of_javas_hash_map() -> None:
    """As OpenJDK 17 prints the keys of maps of these, one within and one beyond 12."""
    few = ["first", "second", "third", "fourth"]
    assert hash_order(few, string_hash) == ["third", "fourth", "first", "second"]
    many = [f"member-{n}" for n in range(13)]
    assert hash_order(many, string_hash) == [
        f"member-{n}" for n in (5, 6, 3, 4, 12, 9, 11, 10, 7, 8, 1, 2, 0)
    ]


def test_keys_of_one_bucket_stay_in_the_order_they_came_in() -> None:
    same = hash_order([16, 0, 32], lambda key: key)
    assert same == [16, 0, 32]


def test_tables_grow_with_what_is_in_them() -> None:
    few, many = [16, *range(1, 12)], [16, *range(1, 13)]
    assert hash_order(few, lambda key: key)[0] == 16
    assert hash_order(many, lambda key: key)[0] == 1


def test_a_copied_set_is_a_size_larger() -> None:
    """HashSet(Collection) makes room for a third more than there is."""
    assert hash_set_order([16, *range(1, 11)])[0] == 16
    assert hash_set_order([16, *range(1, 12)])[-1] == 16


def test_numbers_are_in_the_order_of_their_buckets() -> None:
    assert hash_order([5, 3, 16, 0, 35], own) == [16, 0, 3, 35, 5]
    assert hash_order(reversed(range(30)), own) == list(range(30))


def test_a_negative_number_is_spread() -> None:
    """-1 ^ -1 >>> 16 ends in zeros."""
    assert hash_order([3, -1], own) == [-1, 3]
