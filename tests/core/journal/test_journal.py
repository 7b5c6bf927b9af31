"""The ring of entries: numbers without holes, a bound in bytes, reported gaps."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from mockbroker.core.events import ControllerChanged
from mockbroker.core.journal.entries import CLEARED, ENTRY_BYTES, NO_ROOM, JournalEntry
from mockbroker.core.journal.journal import Gap, Journal
from mockbroker.handlers.base import ConnectionInfo


class Deleted(NamedTuple):
    topic_id: bytes
    name: str


def journal(entries: int = 100) -> Journal:
    """Room for so many entries without bytes of their own."""
    ticks = iter(range(1_000_000))
    return Journal(lambda: next(ticks), entries * ENTRY_BYTES)


def test_numbers_begin_at_1_and_have_no_holes():
    written = journal()
    assert written.request(5, 1, 7, b"frame") == 1
    assert written.response(6, 1, 7, 1, 3, 12, 9, [b"body"]) == 2
    assert written.fact(7, "clock", change="frozen") == 3
    gap, entries = written.since()
    assert gap is None
    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert [entry.virtual_ms for entry in entries] == [5, 6, 7]
    assert [entry.real_ns for entry in entries] == [0, 1, 2]


def test_reading_begins_behind_a_number_and_ends_at_a_limit():
    written = journal()
    for at_ms in range(10):
        written.fact(at_ms, "action", name="x")
    gap, entries = written.since(4, 3)
    assert gap is None
    assert [entry.seq for entry in entries] == [5, 6, 7]
    assert written.since(10) == (None, [])
    assert written.since(2**63 - 1, 5) == (None, [])
    assert written.since(4, 2**63 - 1)[1][-1].seq == 10
    with pytest.raises(ValueError, match="-1"):
        written.since(-1)


def test_a_full_journal_removes_its_oldest_entries_and_reports_the_gap():
    written = journal(entries=3)
    for at_ms in range(5):
        written.fact(at_ms, "action", name="x")
    gap, entries = written.since()
    assert gap == Gap(1, 2)
    assert [entry.seq for entry in entries] == [3, 4, 5]
    assert written.since(2)[0] is None
    assert written.since(1)[0] == Gap(2, 2)
    assert written.bytes == 3 * ENTRY_BYTES


def test_the_bytes_that_an_entry_keeps_from_being_freed_count():
    written = Journal(lambda: 0, 10_000)
    written.request(0, 1, 1, bytes(6_000))
    assert written.bytes == 6_000 + ENTRY_BYTES
    written.response(0, 1, 1, 1, 1, 4, 1, [bytes(3_000), bytes(3_000)])
    assert written.first_seq == 2
    assert written.bytes == 6_000 + ENTRY_BYTES


@pytest.mark.parametrize("frame_bytes", [0, 100, 5_000, 300_000])
def test_a_large_journal_holds_its_bytes_and_no_more(frame_bytes: int):
    room = 1_000_000
    written = Journal(lambda: 0, room)
    for number in range(1, 4_001):
        assert written.request(0, 1, 1, bytes(frame_bytes)) == number
        assert written.bytes <= room
        assert written.bytes == len(written) * (frame_bytes + ENTRY_BYTES)
    assert written.bytes > room * 0.98 - frame_bytes - ENTRY_BYTES
    _, entries = written.since(0, 2)
    assert [entry.seq for entry in entries] == [written.first_seq + n for n in range(2)]


def test_a_lower_limit_removes_entries_at_once():
    written = journal(entries=100)
    for _ in range(100):
        written.fact(0, "action", name="x")
    written.bytes_max = 10 * ENTRY_BYTES
    assert 9 <= len(written) <= 10
    assert written.bytes == len(written) * ENTRY_BYTES


def test_an_entry_above_the_limit_is_removed_at_once():
    written = Journal(lambda: 0, 1_000)
    written.request(0, 1, 1, bytes(5_000))
    assert (len(written), written.bytes) == (0, 0)
    assert written.since()[0] == Gap(1, 1)


def test_followers_get_each_entry_as_it_is_written():
    written = journal()
    seen: list[int] = []

    def follow(entry: object) -> None:
        assert isinstance(entry, JournalEntry)
        seen.append(entry.seq)

    written.fact(0, "action", name="before")
    written.followers.append(follow)
    written.fact(0, "action", name="x")
    written.event(ControllerChanged(3, 2, 1, -1))
    written.followers.remove(follow)
    written.fact(0, "action", name="after")
    assert seen == [2, 3]


def test_a_connection_is_kept_with_the_entry_of_its_end():
    written = journal(entries=3)
    info = ConnectionInfo(7, "127.0.0.1", 50_000)
    written.opened(0, 1, info)
    written.closed(0, 1, info, "over")
    for _ in range(2):
        written.fact(0, "action", name="x")
        assert written.connection(7) is info
    written.fact(0, "action", name="x")
    assert written.connection(7) is None


def test_the_name_of_a_deleted_topic_leaves_with_the_entries_from_before_its_deletion():
    written = journal(entries=3)
    for number in range(100):
        written.fact(0, "action", name="x")
        written.topic_deleted(Deleted(bytes([number]), f"t{number}"))
    assert list(written.former_topics.values()) == ["t97", "t98", "t99"]


def test_clearing_removes_the_entries_and_continues_the_numbers():
    written = journal()
    open_one, closed_one = (ConnectionInfo(each, "127.0.0.1", each) for each in (1, 2))
    written.opened(0, 1, open_one)
    written.opened(0, 1, closed_one)
    written.closed(0, 1, closed_one, "over")
    written.clear()
    assert (len(written), written.bytes, written.last_seq) == (0, 0, 3)
    assert written.connection(1) is open_one
    assert written.connection(2) is None
    assert written.fact(0, "action", name="x") == 4
    assert written.since()[0] == Gap(1, 3, CLEARED)


def test_entries_removed_after_a_clear_are_reported_as_a_lack_of_room():
    written = journal(2)
    for number in range(3):
        written.fact(0, "action", name=str(number))
    written.clear()
    assert written.since()[0] == Gap(1, 3, CLEARED)
    for number in range(5):
        written.fact(0, "action", name=str(number))
    gap, entries = written.since()
    assert gap == Gap(1, entries[0].seq - 1, NO_ROOM)
    assert gap.last_seq > 3
