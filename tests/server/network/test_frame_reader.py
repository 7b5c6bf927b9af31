"""Frames: whole ones are read, and announced ones take no memory."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

import pytest
import trio

from mockbroker.server.network.frame_reader import (
    LARGE_BUFFER_BYTES,
    FrameReader,
    InvalidReceiveError,
)
from mockbroker.server.network.stats import Stats
from tests.support.traced import traced

FRAME_BYTES_MAX = 100 << 20


class Chunks:
    """A transport whose client sends `chunks`, and then closes, or falls silent."""

    def __init__(self, *chunks: bytes, closes: bool = True) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._closes = closes
        self._rest = b""

    async def receive_into(self, buffer: memoryview, *, expect_data: bool = False) -> int:
        self._rest = self._rest or next(self._chunks, b"")
        if not self._rest and not self._closes:
            await trio.sleep_forever()
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def reader(transport: Chunks) -> FrameReader:
    return FrameReader(transport, Stats(Counter()), FRAME_BYTES_MAX)  # type: ignore[arg-type]


@pytest.mark.parametrize("chunk", [1_000, LARGE_BUFFER_BYTES, LARGE_BUFFER_BYTES + 1, 1 << 20])
@pytest.mark.parametrize("size", [20_000, LARGE_BUFFER_BYTES, 3 * LARGE_BUFFER_BYTES + 5])
@pytest.mark.trio
async def test_a_large_frame_comes_in_any_pieces(size: int, chunk: int):
    frame = bytes(index % 251 for index in range(size))
    sent = struct.pack(">i", size) + frame + b"\0\0\0\1x"
    frames = reader(Chunks(*(sent[at : at + chunk] for at in range(0, len(sent), chunk))))
    assert await frames._read_frame() == frame
    assert await frames._read_frame() == b"x"
    assert await frames._read_frame() is None


@pytest.mark.trio
async def test_an_announced_frame_takes_memory_for_what_has_arrived(autojump_clock: object):
    """Twenty clients that announce 100 MiB each would take 2 GB."""
    arrived = 1 << 20
    frames = reader(
        Chunks(struct.pack(">i", FRAME_BYTES_MAX), bytes(arrived), closes=False),
    )
    with traced() as memory, trio.move_on_after(1):
        await frames._read_frame()
    assert memory.peak < 4 * arrived


@pytest.mark.trio
async def test_a_stream_that_ends_inside_a_frame_says_how_much_was_there():
    frames = reader(Chunks(struct.pack(">i", 1 << 20), bytes(300_000)))
    with pytest.raises(InvalidReceiveError, match="stream ended after 300000 of 1048576 bytes"):
        await frames._read_frame()
