"""Changes of bytes that parsers dislike."""

from __future__ import annotations

import random
from collections.abc import Sequence

INTERESTING = (0, 1, 2, 7, 8, 16, 64, 127, 128, 255, 256, 32767, 32768, 65535, 1 << 20, 1 << 24)
SIGNED = (-1, -2, -128, -32768, -(1 << 31), -(1 << 63), (1 << 31) - 1, (1 << 63) - 1)
CHANGES_MAX = 4


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes], bytes_max: int) -> bytes:
    """`data` with one to four changes, of at most `bytes_max` bytes."""
    out = bytearray(data)
    for _ in range(rng.randint(1, CHANGES_MAX)):
        rng.choice(_CHANGES)(rng, out, others)
    return bytes(out[:bytes_max])


def _flip(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    if out:
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)


def _byte(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    if out:
        out[rng.randrange(len(out))] = rng.choice(
            (0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256))
        )


def _number(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    size = rng.choice((2, 4, 8))
    if len(out) < size:
        return
    at = rng.randrange(len(out) - size + 1)
    value = rng.choice((*INTERESTING, *SIGNED, len(out), len(out) - at, len(out) - at - size + 1))
    order = rng.choice(("big", "little"))
    out[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, order)


def _cut(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    del out[rng.randrange(len(out) + 1) :]


def _remove(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(out) + 1)
    del out[at : at + rng.randint(1, 16)]


def _repeat(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    """A piece again and again: many small elements are what costs."""
    at = rng.randrange(len(out) + 1)
    piece = out[at : at + rng.choice((1, 2, 3, 4, 8, 16, 64))]
    out[at:at] = piece * rng.choice((1, 2, 16, 256, 1024))


def _insert(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(out) + 1)
    out[at:at] = rng.randbytes(rng.randint(1, 8))


def _splice(rng: random.Random, out: bytearray, others: Sequence[bytes]) -> None:
    if not others:
        return
    other = rng.choice(others)
    start = rng.randrange(len(other) + 1)
    at = rng.randrange(len(out) + 1)
    out[at : at + rng.choice((0, 8, len(out)))] = other[start : start + rng.randint(1, 256)]


_CHANGES = (_flip, _flip, _byte, _byte, _number, _number, _cut, _remove, _repeat, _insert, _splice)


def amplified(rng: random.Random, data: bytes, size: int) -> bytes:
    """`data` with one small piece repeated until it has `size` bytes: many parts of few bytes."""
    at = rng.randrange(len(data) + 1)
    piece = data[at : at + rng.randint(1, 64)] or b"\0"
    return data[:at] + piece * (max(size - len(data), 0) // len(piece)) + data[at:]
