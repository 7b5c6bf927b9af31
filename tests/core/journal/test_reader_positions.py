"""A full journal with unread entries."""

from __future__ import annotations

from mockbroker.core.journal.entries import ENTRY_BYTES
from mockbroker.core.journal.journal import Gap, Journal
from mockbroker.core.journal.reader_positions import Overflow


def journal(overflow: Overflow, entries: int = 5) -> Journal:
    return Journal(lambda: 0, entries * ENTRY_BYTES, overflow)


def write(written: Journal, count: int) -> None:
    for _ in range(count):
        written.fact(0, "action", name="x")


def test_without_a_reader_the_oldest_entries_are_removed() -> None:
    written = journal("block")
    write(written, 8)
    assert (written.first_seq, written.readers.full) == (4, False)


def test_a_slow_reader_finds_a_gap_where_entries_are_dropped() -> None:
    written = journal("drop")
    reader = written.readers.add(0)
    reader.has_read(1)
    write(written, 8)
    assert not written.readers.full
    assert written.since(reader.position)[0] == Gap(2, 3)


def test_unread_entries_are_kept_until_they_are_read() -> None:
    """The journal is full meanwhile, and tells those who wait once it is not."""
    written = journal("block")
    write(written, 2)
    reader = written.readers.add(1)
    calls: list[str] = []
    write(written, 5)
    assert (written.first_seq, written.readers.full) == (2, True)
    assert written.readers.when_room(lambda: calls.append("first"))
    assert not written.readers.when_room(lambda: calls.append("second"))
    assert written.since(reader.position)[0] is None
    reader.has_read(3)
    assert (written.first_seq, written.readers.full) == (3, False)
    assert calls == ["first", "second"]
    write(written, 1)
    assert calls == ["first", "second"]


def test_a_reader_at_the_end_blocks_nothing() -> None:
    written = journal("block")
    reader = written.readers.add(0)
    for number in range(1, 20):
        write(written, 1)
        reader.has_read(number)
        assert not written.readers.full
    assert written.first_seq == 15


def test_a_closed_reader_needs_no_entries() -> None:
    written = journal("block")
    reader, other = written.readers.add(0), written.readers.add(0)
    write(written, 7)
    other.has_read(7)
    assert written.readers.full
    reader.close()
    reader.close()
    assert (written.first_seq, written.readers.full) == (3, False)


def test_a_stalled_reader_gives_up_and_finds_a_gap() -> None:
    """Nobody else does, least of all one that has read everything."""
    written = journal("block")
    still, caught_up = written.readers.add(0), written.readers.add(0)
    write(written, 7)
    caught_up.has_read(7)
    seen = written.readers.positions()
    assert written.readers.give_up_stalled(seen) == [still]
    assert not written.readers.full
    assert written.since(still.position)[0] == Gap(1, 2)
    write(written, 8)
    assert written.readers.full
    assert written.since(caught_up.position)[0] is None


def test_a_reader_that_has_moved_does_not_give_up() -> None:
    written = journal("block")
    reader = written.readers.add(0)
    write(written, 9)
    seen = written.readers.positions()
    reader.has_read(1)
    assert written.readers.full
    assert written.readers.give_up_stalled(seen) == []
    assert written.since(reader.position)[0] is None


def test_the_journal_holds_at_most_twice_its_bytes() -> None:
    """Whatever happens by itself: memory is not without end."""
    written = journal("block")
    reader = written.readers.add(0)
    write(written, 30)
    assert written.bytes <= 10 * ENTRY_BYTES
    assert written.since(reader.position)[0] == Gap(1, 20)
    assert written.readers.full


def test_clearing_makes_room() -> None:
    written = journal("block")
    written.readers.add(0)
    calls: list[str] = []
    write(written, 7)
    written.readers.when_room(lambda: calls.append("room"))
    written.clear()
    assert (written.readers.full, calls) == (False, ["room"])
    write(written, 5)
    assert not written.readers.full
