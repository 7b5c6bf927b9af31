"""Entries are read as they were written, up to the end of a truncated file."""

from __future__ import annotations

import zlib

import pytest

from mockbroker.core.events import ChangedTopic, Event, LeaderChanged, RecordsRemoved, TopicsChanged
from mockbroker.core.journal.entries import (
    AppendEntry,
    EventEntry,
    FactEntry,
    HopEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.journal import Gap
from mockbroker.core.journal.tracking import Tracking
from mockbroker.pipeline.spool.format import (
    FORMAT,
    HEADER,
    ClientIdentified,
    InitialTopic,
    RunEnded,
    RunStarted,
    Torn,
    decode,
    encode,
)

ENTRIES = [
    RunStarted(
        FORMAT,
        "r",
        "cluster",
        1,
        2,
        0,
        [InitialTopic("t", "id", [(1, 0), (-1, 3)])],
        [Tracking(topic="t", key="$.id")],
    ),
    ClientIdentified(7, "127.0.0.1", 4711, "PLAINTEXT", "User:ANONYMOUS", "librdkafka", "2"),
    RequestEntry(1, 10, 20, 1, 7, b"\x00\x12frame"),
    ResponseEntry(2, 10, 21, 1, 7, 1, 18, 4, 99, [b"a", b"bc"], "", ("rule",)),
    ResponseEntry(3, 10, 22, 1, 7, 1, 0, 11, 100, None, "no response", ()),
    AppendEntry(4, 10, 23, 1, 3, "t", b"i" * 16, 0, 2, 5, 9, 10, 700, -1, -1, -1, False, 15),
    HopEntry(5, 10, 23, 1, 2, 1, 17, "", 0, None, "", ()),
    EventEntry(6, 11, 24, LeaderChanged(11, "t", 0, 1, 2, 3, (1, 2), True, "why")),
    EventEntry(7, 11, 24, TopicsChanged(11, (ChangedTopic("t", "id", ((1, 2), (3, 1))),), ())),
    EventEntry(8, 11, 24, RecordsRemoved(11, "t", "id", 0, 0, 9, "compaction", "", b"\xff" * 16)),
    FactEntry(9, 11, 24, "action", {"change": "stop_broker", "arguments": {"node": 2}}),
    Gap(10, 12, "too fast"),
    RunEnded(12, 12, 25),
]


def test_every_kind_of_entry_comes_back():
    assert list(decode(b"".join(map(encode, ENTRIES)))) == ENTRIES


def test_every_event_of_a_cluster_can_be_in_a_file():
    # Tests of the journal declare events of their own, in whichever worker they run.
    kinds = {kind for kind in Event.__subclasses__() if kind.__module__ == Event.__module__}
    assert kinds
    assert {type(event_of(kind)) for kind in kinds} == kinds


def event_of(kind):
    """An event of a class, through a file."""
    values = {"int": 1, "str": "x", "bool": True, "bytes": b"x"}
    fields = {
        name: values.get(kind.__annotations__[name], ()) for name in kind.__struct_fields__[1:]
    }
    entry = EventEntry(1, 1, 1, kind(5, **fields))
    [found] = decode(encode(entry))
    assert found == entry
    return found.event


def test_buffers_of_any_kind_are_written_as_bytes():
    entry = ResponseEntry(
        1, 1, 1, 1, 1, 1, 1, 1, 1, [memoryview(b"ab")[1:], bytearray(b"c")], "", ()
    )
    [found] = decode(encode(entry))
    assert isinstance(found, ResponseEntry)
    assert found.body == [b"b", b"c"]


def test_a_file_that_breaks_off_anywhere_is_read_up_to_the_last_whole_entry():
    whole = b"".join(map(encode, ENTRIES))
    ends = [0]
    for entry in ENTRIES:
        ends.append(ends[-1] + len(encode(entry)))
    for size in range(len(whole)):
        entries = list(decode(whole[:size]))
        if size in ends:
            assert entries == ENTRIES[: ends.index(size)]
            continue
        *entries, torn = entries
        assert isinstance(torn, Torn)
        assert entries == ENTRIES[: sum(end <= size for end in ends) - 1]
        assert torn.position == max(end for end in ends if end <= size)


@pytest.mark.parametrize("at", [0, 3, 5, 9, 12])
def test_damage_is_noticed(at):
    first, second = encode(ENTRIES[2]), bytearray(encode(ENTRIES[3]))
    second[at] ^= 0x40
    found = list(decode(first + bytes(second) + encode(ENTRIES[4])))
    assert found[0] == ENTRIES[2]
    assert isinstance(found[1], Torn)
    assert len(found) == 2


def test_an_entry_that_is_nested_too_deeply_ends_the_file() -> None:
    whole = encode(ENTRIES[2])
    body = b"\x91" * 100_000  # arrays of one array each
    first, last = decode(whole + HEADER.pack(len(body), zlib.crc32(body)) + body)
    assert first == ENTRIES[2]
    assert isinstance(last, Torn)
    assert last.position == len(whole)


def test_an_entry_with_text_that_is_none_ends_the_file() -> None:
    """Its checksum may be right: the file was written like that."""
    whole = encode(ENTRIES[2])
    client = ClientIdentified(7, "HOST", 4711, "PLAINTEXT", "User:ANONYMOUS", "librdkafka", "2")
    body = encode(client)[HEADER.size :].replace(b"HOST", b"\xff\xff\xff\xff")
    first, last = decode(whole + HEADER.pack(len(body), zlib.crc32(body)) + body)
    assert first == ENTRIES[2]
    assert isinstance(last, Torn)
    assert last.position == len(whole)
