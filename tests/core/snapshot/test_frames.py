"""Frames: what was cut off and what was damaged are told apart, at every byte."""

from __future__ import annotations

import io
import struct

import pytest

from mockbroker.core.snapshot.frames import (
    FILE_HEADER,
    FRAME_HEADER_BYTES,
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


def test_a_flipped_bit_is_told_with_the_frame_that_it_is_in():
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


def test_zeros_with_something_behind_them_are_damage():
    with pytest.raises(DamageError):
        read(written() + bytes(5000) + b"\1")


@pytest.mark.parametrize(
    "start", [b"", b"mock", b"PK\3\4" + bytes(100), b"mockbroker\n\0" + bytes(9)]
)
def test_other_files_are_refused(start):
    with pytest.raises(FormatError, match="not a snapshot of mockbroker"):
        check_file_header(io.BytesIO(start))


def test_a_format_of_later_is_refused_with_its_number():
    data = file_header()[:12] + struct.pack(">I", 7)
    with pytest.raises(FormatError, match=r"of format 7, and this release .* only 1"):
        check_file_header(io.BytesIO(data))
