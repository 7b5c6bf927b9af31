"""Saved journals: files, directories, and those that are broken."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
import pytest

from mockbroker.core.events import ChangedTopic, TopicsChanged
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import EventEntry, FactEntry
from mockbroker.core.journal.journal import Gap
from mockbroker.core.journal.reader import JournalReader
from mockbroker.pipeline.saved import SavedJournal, open_journal
from mockbroker.pipeline.spool.format import (
    FORMAT,
    HEADER,
    InitialTopic,
    RunEnded,
    RunStarted,
    SpoolEntry,
    encode,
)
from mockbroker.pipeline.store import StoreError

ORDERS, MENU = b"o" * 16, b"m" * 16
STARTED = RunStarted(FORMAT, "r", "c", 10, 20, 0, [InitialTopic("orders", uuid_text(ORDERS), [])])


def fact(seq: int) -> FactEntry:
    return FactEntry(seq, 100 + seq, 200 + seq, "clock", {"change": "frozen"})


def written(path: Path, *entries: SpoolEntry) -> Path:
    path.write_bytes(b"".join(map(encode, entries)))
    return path


def whole(tmp_path: Path) -> SavedJournal:
    entries = [STARTED, *(fact(seq) for seq in range(1, 6)), RunEnded(5, 999, 1)]
    return open_journal(written(tmp_path / "journal.mbj", *entries))


def test_a_file_is_read_as_a_running_journal_is(tmp_path: Path):
    journal = whole(tmp_path)
    assert (journal.first_seq, journal.last_seq, len(journal)) == (1, 5, 5)
    assert (journal.torn, journal.ended_ms, journal.dropped) == ("", 999, 0)
    assert journal.entry(3) == fact(3)
    assert (journal.entry(0), journal.entry(6)) == (None, None)
    assert journal.since(2, 2) == (None, [fact(3), fact(4)])
    assert journal.since(5) == (None, [])
    with pytest.raises(ValueError, match="at least 0"):
        journal.since(-1)


def test_a_part_has_its_entries(tmp_path: Path):
    part = whole(tmp_path).part(1, 3)
    assert (list(part), part.first_seq, part.last_seq, len(part)) == ([fact(2), fact(3)], 2, 3, 2)
    empty = whole(tmp_path).part(9, 12)
    assert (list(empty), empty.last_seq) == ([], 9)


def test_a_gap_is_told_before_the_entries_behind_it(tmp_path: Path):
    path = written(tmp_path / "j", STARTED, fact(1), fact(2), Gap(3, 7, "no room"), fact(8))
    journal = open_journal(path)
    assert journal.dropped == 5
    assert journal.since() == (None, [fact(1), fact(2)])
    assert journal.since(2) == (Gap(3, 7, "no room"), [fact(8)])
    reader = JournalReader(journal, journal.topic_name)
    assert [(each.kind, each.seq) for each in reader.events(2)] == [("gap", 7), ("clock", 8)]


def test_topics_are_known_from_the_start_and_from_events(tmp_path: Path):
    created = TopicsChanged(1, (ChangedTopic("menu", uuid_text(MENU), ()),), ())
    deleted = TopicsChanged(1, (), (ChangedTopic("menu", uuid_text(MENU), ()),))
    entries = [EventEntry(1, 1, 1, created), EventEntry(2, 1, 1, deleted)]
    journal = open_journal(written(tmp_path / "j", STARTED, *entries))
    assert (journal.topic_name(ORDERS), journal.topic_name(MENU)) == ("orders", "menu")
    assert journal.former_topics == {MENU: "menu"}


def test_a_file_that_breaks_off_is_read_up_to_there(tmp_path: Path):
    path = written(tmp_path / "journal.mbj", STARTED, fact(1), fact(2))
    path.write_bytes(path.read_bytes()[:-3])
    journal = open_journal(path)
    assert (len(journal), journal.last_seq) == (1, 1)
    assert journal.torn.startswith("journal.mbj at byte ")
    assert journal.torn.endswith("the file ends inside an entry")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no journal of mockbroker: it is empty"),
        (b"not at all a journal", "is no journal of mockbroker: .* at byte 0"),
        (encode(fact(1)), "its first entry is missing"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, data: bytes, message: str):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(StoreError, match=message):
        open_journal(path)


@pytest.mark.parametrize("fields", [["begin", 99, {"new": 1}], ["begin", 99]])
def test_another_format_is_named_whatever_its_fields_are(tmp_path: Path, fields: list[object]):
    body = msgspec.msgpack.encode(fields)
    path = tmp_path / "file"
    path.write_bytes(HEADER.pack(len(body), zlib.crc32(body)) + body)
    with pytest.raises(StoreError, match=f"has format 99, this mockbroker reads {FORMAT}: use the"):
        open_journal(path)


def test_a_directory_is_that_of_a_run(tmp_path: Path):
    spool = tmp_path / "_spool" / "night"
    spool.mkdir(parents=True)
    written(spool / "000000.spool", STARTED, fact(1), RunEnded(1, 1, 1))
    assert len(open_journal(tmp_path)) == len(open_journal(spool)) == 1
    (tmp_path / "_spool" / "day").mkdir()
    with pytest.raises(StoreError, match="several runs"):
        open_journal(tmp_path)


def test_a_directory_or_file_without_a_journal_is_refused(tmp_path: Path):
    with pytest.raises(StoreError, match="has no journal"):
        open_journal(tmp_path)
    (tmp_path / "_runs").mkdir()
    with pytest.raises(StoreError, match="has tables only"):
        open_journal(tmp_path)
    with pytest.raises(StoreError, match=r"cannot read .*: No such file"):
        open_journal(tmp_path / "missing")
