"""Where a log's bytes lie: what is taken away is given back, and what stays reads as before."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.log.batch_store import (
    EXTENT_BYTES_MAX,
    EXTENT_BYTES_MIN,
    VIEW_BYTES_MIN,
    BatchStore,
)
from mockbroker_protocol.records import BatchHeader
from tests.support.requests import batch_of

SIZES = st.sampled_from([1, 50, 900, 5000, VIEW_BYTES_MIN, VIEW_BYTES_MIN + 777])


def stored(*sizes: int, first: int = 0, timestamps: list[int] | None = None) -> BatchStore:
    """A store of batches of one record each, with values of these sizes."""
    store = BatchStore()
    for at, size in enumerate(sizes):
        timestamp = timestamps[at] if timestamps else first + at
        batch = batch_of(b"x" * size, base_offset=first + at, timestamp=timestamp)
        store.put(memoryview(batch), first + at, timestamp)
    return store


def shown(store: BatchStore) -> list[tuple[int, int]]:
    """(base offset, bytes) of each batch, read one by one."""
    headers = [(BatchHeader(batch), len(batch)) for batch in store.batches()]
    assert all(header.size == size for header, size in headers)
    assert [header.base_offset for header, _ in headers] == list(store._base_offsets)
    return [(header.base_offset, size) for header, size in headers]


def content(store: BatchStore) -> bytes:
    """Every byte, read at one go."""
    if not store.batch_count:
        return b""
    return b"".join(store._pieces(store._positions[0], store.end_position))


def maxima(store: BatchStore) -> list[int]:
    """The running maxima, worked out anew."""
    running: list[int] = []
    for batch in store.batches():
        running.append(max([BatchHeader(batch).max_timestamp, *running[-1:]]))
    return running


def held_memory(store: BatchStore) -> int:
    return sum(len(extent.obj) for extent in store._extents)  # type: ignore[arg-type]


@given(st.lists(SIZES, max_size=12), st.data())
def test_batches_dropped_at_the_beginning_leave_the_others_as_they_were(sizes, data):
    store = stored(*sizes)
    before = shown(store)
    count = data.draw(st.integers(0, len(sizes)))
    store._drop(count)
    assert shown(store) == before[count:]
    assert len(content(store)) == store.held_bytes == sum(size for _, size in before[count:])
    more = batch_of(b"more", base_offset=99)
    store.put(memoryview(more), 99, 5)
    assert shown(store) == [*before[count:], (99, len(more))]


@given(st.lists(SIZES, max_size=10), st.lists(SIZES, max_size=10), st.data())
def test_batches_put_in_place_of_the_first_ones_leave_the_others_as_they_were(old, new, data):
    store, front = stored(*old, first=100), stored(*new)
    count = data.draw(st.integers(0, len(old)))
    expected = shown(front) + shown(store)[count:]
    sizes = content(front) + b"".join(list(store.batches())[count:])
    front.seal()
    end = store.end_position
    shift = store._replace(count, front)
    assert shown(store) == expected
    assert content(store) == sizes
    assert store.end_position == end
    assert list(store._positions[:1]) == [shift] * bool(new) or not new
    more = batch_of(b"more", base_offset=999)
    store.put(memoryview(more), 999, 5)
    assert shown(store) == [*expected, (999, len(more))]


@given(st.lists(SIZES, max_size=8), st.lists(SIZES, max_size=8), st.data())
def test_batches_shared_by_another_store_are_appended_as_they_are_there(own, others, data):
    store = stored(*own, timestamps=[data.draw(st.integers(0, 200)) for _ in own])
    other = stored(*others, first=100)
    first = data.draw(st.integers(0, len(others)))
    last = data.draw(st.integers(first, len(others)))
    some = BatchStore()
    other.share_into(some, first, last)
    expected = shown(store) + shown(other)[first:last]
    whole = content(store) + b"".join(list(other.batches())[first:last])
    assert shown(some) == shown(other)[first:last]
    store.extend(some)
    assert shown(store) == expected
    assert list(store._max_timestamps) == maxima(store)
    assert content(store) == whole
    more = batch_of(b"more", base_offset=999)
    store.put(memoryview(more), 999, 5)
    assert content(store) == whole + more
    assert shown(store) == [*expected, (999, len(more))]


@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 9), max_size=5), st.data())
def test_running_maxima_are_right_after_either(old, new, data):
    count = data.draw(st.integers(0, len(old)))
    store = stored(*[1] * len(old), timestamps=old)
    store._drop(count)
    assert list(store._max_timestamps) == maxima(store)
    store = stored(*[1] * len(old), first=50, timestamps=old)
    store._replace(count, stored(*[1] * len(new), timestamps=new))
    assert list(store._max_timestamps) == maxima(store)


def test_dropped_memory_is_given_back():
    store = stored(*[1000] * 4000)
    whole = held_memory(store)
    store._drop(2000)
    assert held_memory(store) <= whole / 2 + 2 * EXTENT_BYTES_MAX
    store._drop(1999)
    assert held_memory(store) <= EXTENT_BYTES_MAX
    store._drop(1)
    assert held_memory(store) == 0
    assert shown(store) == []


def test_a_sealed_store_holds_hardly_more_than_its_bytes():
    rng = random.Random(3)
    store = stored(*[rng.randrange(2000) for _ in range(500)])
    before = content(store)
    store.seal()
    assert content(store) == before
    assert held_memory(store) <= 1.1 * len(before)


def test_batches_behind_a_sealed_extent_are_read_without_the_room_that_is_left_behind_them():
    """Whatever their size is. The next batches go there."""
    first = b"a" * 100
    for size in range(1, EXTENT_BYTES_MIN):
        store = BatchStore()
        store.put(memoryview(first), 0, 0)
        store.seal()
        second = b"b" * size
        store.put(memoryview(second), 1, 0)
        assert b"".join(store.pieces_of(1, 2)) == second
        assert b"".join(store.pieces_of(0, 2)) == first + second


def test_a_view_that_was_handed_out_outlives_what_it_shows():
    store = stored(10, 10, 10)
    view = store.batch_at(0)
    before = bytes(view)
    store._drop(2)
    store.put(memoryview(batch_of(b"new", base_offset=3)), 3, 3)
    store._replace(1, stored(5, 5))
    assert bytes(view) == before


def test_what_follows_a_cut_is_read_as_it_was_put_and_old_views_stay():
    store = stored(10, 10, 10)
    view = store.batch_at(1)
    before = bytes(view)
    store._cut(1)
    more = batch_of(b"other", base_offset=1)
    store.put(memoryview(more), 1, 1)
    assert bytes(store.batch_at(1)) == bytes(more)
    assert bytes(view) == before


def test_a_large_batch_is_copied_only_out_of_a_frame_that_is_much_larger():
    batch = batch_of(b"x" * VIEW_BYTES_MIN)
    store = BatchStore()
    store.put(memoryview(batch), 0, 0)
    assert store._extents[0].obj is batch
    store.put(memoryview(batch + bytes(len(batch)))[: len(batch)], 0, 0)
    assert held_memory(store) == 2 * len(batch)


def test_a_store_that_is_sealed_again_stays_as_it_is():
    store = stored(10, 20)
    before = content(store)
    store.seal()
    store.seal()
    assert content(store) == before


@pytest.mark.parametrize(("spare", "copied"), [(0, False), (8, True)])
def test_a_large_batch_stays_in_its_frame_from_seven_eighths_on(spare: int, copied: bool) -> None:
    size = 7 * VIEW_BYTES_MIN
    frame = bytearray(8 * VIEW_BYTES_MIN + spare)
    store = BatchStore()
    store.put(memoryview(frame)[:size], 0, 0)
    assert (store.batch_at(0).obj is not frame) == copied


def test_a_small_store_that_is_sealed_holds_its_bytes_alone() -> None:
    batch = batch_of(b"v")
    store = BatchStore()
    store.put(memoryview(batch), 0, 0)
    assert held_memory(store) > len(batch)
    store.seal()
    assert held_memory(store) == len(batch)
    assert bytes(store.batch_at(0)) == bytes(batch)
