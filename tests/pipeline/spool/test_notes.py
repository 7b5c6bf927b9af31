"""Notes come back as they were written, up to where a file breaks off."""

from __future__ import annotations

import pytest

from mockbroker.pipeline.spool.notes import (
    Answered,
    Appended,
    Asked,
    Begin,
    End,
    Fact,
    KnownTopic,
    Lost,
    Peer,
    Torn,
    packed,
    unpacked,
)

NOTES = [
    Begin(1, "r", "cluster", 1, 2, 0, [KnownTopic("t", "id", [(1, 0), (-1, 3)])]),
    Peer(7, "127.0.0.1", 4711, "User:ANONYMOUS", "librdkafka 2"),
    Asked(1, 10, 20, 1, 7, b"\x00\x12frame"),
    Answered(2, 10, 21, 1, 7, 1, 18, 4, 99, [b"a", b"bc"], "", ["rule"]),
    Answered(3, 10, 22, 1, 7, 1, 0, 11, 100, None, "no response", [], None),
    Appended(4, 10, 23, 1, 3, "t", 0, 5, 9, 10, 700, -1, -1, -1, False),
    Fact(5, 11, 24, "event", "LeaderChanged", {"topic": "t", "isr": [1, 2], "unclean": True}),
    Lost(6, 9, "too fast"),
    End(9, 12, 25),
]


def test_every_kind_of_note_comes_back():
    assert list(unpacked(b"".join(map(packed, NOTES)))) == NOTES


def test_buffers_of_any_kind_are_written_as_bytes():
    note = Answered(1, 1, 1, 1, 1, 1, 1, 1, 1, [memoryview(b"ab")[1:], bytearray(b"c")], "", [])
    (found,) = unpacked(packed(note))
    assert isinstance(found, Answered)
    assert found.body == [b"b", b"c"]


def test_a_file_that_breaks_off_anywhere_is_read_up_to_the_last_whole_note():
    whole = b"".join(map(packed, NOTES))
    ends = [0]
    for note in NOTES:
        ends.append(ends[-1] + len(packed(note)))
    for size in range(len(whole)):
        *notes, last = [*unpacked(whole[:size]), None]
        if size in ends:
            assert notes == NOTES[: ends.index(size)]
            continue
        *notes, torn = notes
        assert isinstance(torn, Torn)
        assert last is None
        assert notes == NOTES[: sum(end <= size for end in ends) - 1]
        assert torn.position == max(end for end in ends if end <= size)


@pytest.mark.parametrize("at", [0, 3, 5, 9, 12])
def test_damage_is_noticed(at):
    first, second = packed(NOTES[2]), bytearray(packed(NOTES[3]))
    second[at] ^= 0x40
    found = list(unpacked(first + bytes(second) + packed(NOTES[4])))
    assert found[0] == NOTES[2]
    assert isinstance(found[1], Torn)
    assert len(found) == 2
