"""Frames: a truncated file and a damaged one are distinguished, at every byte."""

from __future__ import annotations

import io
import struct

import pytest

from mockbroker.core.snapshot import frames as frames_of
from mockbroker.core.snapshot.frames import (
    FILE_HEADER,
    FRAME_HEADER_BYTES,
    SECTOR_BYTES,
    DamageError,
    FormatError,
    Frame,
    check_file_header,
    file_header,
    frame,
    read_frames,
)

BODIES = [(b"head one", [b"body"]), (b"second head", [b"in ", b"two ", b"pieces"]), (b"third", [])]


def written() -> bytes:
    pieces = [
        piece for head, body in BODIES for piece in frame(head, [memoryview(each) for each in body])
    ]
    return file_header() + b"".join(pieces)


def read(data: bytes) -> list[Frame]:
    file = io.BytesIO(data)
    return list(read_frames(file, check_file_header(file), len(data)))


def test_frames_come_back_as_they_were_written():
    frames = read(written())
    assert [(each.head, each.body) for each in frames] == [
        (head, b"".join(body)) for head, body in BODIES
    ]
    assert frames[0].offset == FILE_HEADER.size
    assert [each.end for each in frames[:-1]] == [each.offset for each in frames[1:]]
    assert frames[-1].end == len(written())


def test_wherever_a_file_ends_the_frames_that_are_whole_are_there():
    data = written()
    ends = [each.end for each in read(data)]
    for size in range(FILE_HEADER.size, len(data)):
        assert [each.end for each in read(data[:size])] == [end for end in ends if end <= size]


def test_a_flipped_bit_is_reported_with_its_frame():
    data = written()
    frames = read(data)
    for at in range(FILE_HEADER.size, len(data)):
        for bit in (0x01, 0x80):
            damaged = bytearray(data)
            damaged[at] ^= bit
            place = next(each for each in frames if each.offset <= at < each.end)
            with pytest.raises(DamageError) as raised:
                read(bytes(damaged))
            assert raised.value.offset == place.offset
            in_header = at < place.offset + FRAME_HEADER_BYTES
            assert ("header" in raised.value.reason) is in_header


def test_space_without_data_at_the_end_is_no_damage():
    assert read(written() + bytes(5000)) == read(written())


def long_frames(*synced_bytes: int) -> tuple[bytes, list[int]]:
    """A file of frames of three sectors each, and where each begins."""
    data, begins = file_header(), []
    for number, synced in enumerate(synced_bytes):
        begins.append(len(data))
        body = bytes([number + 1]) * 3 * SECTOR_BYTES
        data += b"".join(frame(b"head", [memoryview(body)], synced))
    return data, begins


def without_sector(data: bytes, at: int) -> bytes:
    """The file, as if the disk had never written the sector that `at` lies in."""
    begin = at // SECTOR_BYTES * SECTOR_BYTES
    size = len(data[begin : begin + SECTOR_BYTES])
    return data[:begin] + bytes(size) + data[begin + SECTOR_BYTES :]


def test_a_sector_that_was_never_written_ends_the_file_before_its_frame():
    data, begins = long_frames(0, 0, 0)
    for at in range(begins[1] + SECTOR_BYTES, begins[2], SECTOR_BYTES):
        (first,) = read(without_sector(data, at))
        assert first.end == begins[1]


def test_a_header_that_was_never_written_ends_the_file():
    data, begins = long_frames(0, 0, 0)
    at = begins[1]
    (first,) = read(data[:at] + bytes(FRAME_HEADER_BYTES) + data[at + FRAME_HEADER_BYTES :])
    assert first.end == at


@pytest.mark.parametrize("kind", ["sector", "header"])
def test_what_was_synced_is_damaged_when_it_is_not_there(kind):
    _, begins = long_frames(0, 0, 0)
    data, begins = long_frames(0, 0, begins[2])
    at = begins[1]
    if kind == "sector":
        data = without_sector(data, at + SECTOR_BYTES)
    else:
        data = data[:at] + bytes(FRAME_HEADER_BYTES) + data[at + FRAME_HEADER_BYTES :]
    with pytest.raises(DamageError) as raised:
        read(data)
    assert raised.value.offset == at


def test_synced_bytes_are_found_where_a_read_ends_inside_a_header(monkeypatch):
    _, begins = long_frames(0, 0, 0)
    data, _ = long_frames(0, 0, begins[2])
    for size in range(1, 60):
        monkeypatch.setattr(frames_of, "SEARCH_BYTES", size)
        with pytest.raises(DamageError):
            read(without_sector(data, begins[1] + SECTOR_BYTES))


def test_zeros_behind_the_last_frame_that_nobody_synced_are_no_damage():
    assert read(written() + bytes(5000) + b"\1") == read(written())


@pytest.mark.parametrize(
    "start", [b"", b"mock", b"PK\3\4" + bytes(100), b"mockbroker\n\0" + bytes(9)]
)
def test_other_files_are_refused(start):
    with pytest.raises(FormatError, match="not a snapshot of mockbroker"):
        check_file_header(io.BytesIO(start))


def test_a_later_format_is_refused_with_its_number():
    data = file_header()[:12] + struct.pack(">I", 7)
    with pytest.raises(
        FormatError, match="the format is 7; this release of mockbroker supports only 3"
    ):
        check_file_header(io.BytesIO(data))
