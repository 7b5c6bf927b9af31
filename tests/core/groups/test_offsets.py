"""Committed and pending offsets, and what markers and tombstones do to them."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.offsets import OffsetAndMetadata, OffsetStore, is_of_other_topic

G, T = "g", "t"


def at(offset: int, record_offset: int = -1) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, record_offset=record_offset)


@pytest.fixture
def store() -> OffsetStore:
    return OffsetStore()


def test_the_last_commit_counts(store: OffsetStore) -> None:
    assert store.get(G, T, 0) is None
    store.commit(G, T, 0, at(1))
    store.commit(G, T, 0, at(2))
    assert store.get(G, T, 0) == at(2)
    assert store.get(G, T, 1) is None
    assert store.get(G, "u", 0) is None


def test_a_tombstone_leaves_nothing_behind(store: OffsetStore) -> None:
    store.commit(G, T, 0, at(1))
    store.commit(G, T, 1, at(1))
    store.remove(G, T, 0)
    store.remove(G, T, 0)
    assert store.of_group(G) == {T: {1: at(1)}}
    store.remove(G, T, 1)
    assert store.committed == {}


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_settles_what_is_pending(store: OffsetStore, committed: bool) -> None:
    store.commit(G, T, 0, at(1, 10))
    store.commit_pending(7, G, T, 0, at(5, 11))
    store.commit_pending(7, G, T, 1, at(6, 12))
    assert store.has_pending(G, T, 0)
    assert store.has_pending(G, T, 1)
    assert (store.groups_of_producer(7), store.groups_of_producer(8)) == ([G], [])
    assert not store.has_pending(G, T, 2)
    assert store.get(G, T, 0) == at(1, 10)
    store.end_transaction(7, committed=committed)
    assert not store.has_pending(G, T, 0)
    assert store.groups_of_producer(7) == []
    assert not store.has_open_transaction(G)
    assert store.get(G, T, 0) == (at(5, 11) if committed else at(1, 10))
    assert store.get(G, T, 1) == (at(6, 12) if committed else None)


def test_a_later_plain_commit_is_not_undone_by_a_marker(store: OffsetStore) -> None:
    store.commit_pending(7, G, T, 0, at(5, 11))
    store.commit(G, T, 0, at(9, 12))
    store.end_transaction(7, committed=True)
    assert store.get(G, T, 0) == at(9, 12)


def test_transactions_of_several_producers_are_told_apart(store: OffsetStore) -> None:
    store.commit_pending(7, G, T, 0, at(5, 11))
    store.commit_pending(8, G, T, 0, at(6, 12))
    store.end_transaction(8, committed=False)
    assert store.has_pending(G, T, 0)
    store.end_transaction(7, committed=True)
    assert store.get(G, T, 0) == at(5, 11)
    store.end_transaction(9, committed=True)


def test_a_tombstone_drops_what_is_pending_too(store: OffsetStore) -> None:
    store.commit_pending(7, G, T, 0, at(5, 11))
    store.remove(G, T, 0)
    assert not store.has_pending(G, T, 0)
    assert not store.has_open_transaction(G)
    store.end_transaction(7, committed=True)
    assert store.get(G, T, 0) is None


def test_keys_are_listed_once_whether_committed_or_pending(store: OffsetStore) -> None:
    store.commit(G, T, 0, at(1))
    store.commit_pending(7, G, T, 0, at(2))
    store.commit_pending(7, G, "u", 3, at(2))
    store.commit("h", T, 5, at(1))
    assert store.keys_of_group(G) == [(T, 0), ("u", 3)]
    assert store.keys_of_topics((T,)) == [(G, T, 0), ("h", T, 5)]
    assert store.keys_of_topics(("u", T)) == [(G, T, 0), ("h", T, 5), (G, "u", 3)]
    assert store.keys_of_topics(("v",)) == []


def test_a_topic_id_that_is_not_known_fits_every_topic() -> None:
    zero, one, two = bytes(16), b"\1" * 16, b"\2" * 16
    named = OffsetAndMetadata(1, topic_id=one)
    assert is_of_other_topic(named, two)
    assert not is_of_other_topic(named, one)
    assert not is_of_other_topic(named, zero)
    assert not is_of_other_topic(OffsetAndMetadata(1), two)
