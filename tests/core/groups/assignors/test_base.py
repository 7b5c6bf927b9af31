"""The order in which assignors meet members and topics is that of Java's hash maps."""

from __future__ import annotations

from mockbroker.core.groups.assignors.base import (
    assignors_by_name,
    hash_order,
    hash_set_order,
    topic_order,
    uuid_hash,
)
from mockbroker.core.hashing.java_hash import string_hash


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


def test_the_hash_of_an_id_mixes_its_halves() -> None:
    assert uuid_hash(bytes(16)) == 0
    assert uuid_hash(bytes(15) + b"\x01") == 1
    assert uuid_hash(bytes(range(16))) == 0x08080808 ^ 0x08080808
    assert topic_order([bytes(15) + b"\x02", bytes(15) + b"\x01"])[0][-1] == 1


def test_there_are_two_assignors() -> None:
    assert set(assignors_by_name()) == {"uniform", "range"}
