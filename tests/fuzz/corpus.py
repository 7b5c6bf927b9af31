"""Kept inputs: one text file a target, an input a line in base64, shortest first."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
INPUT_BYTES_MAX = 1024  # longer ones are kept out: the corpus is committed
CORPUS_BYTES_MAX = 300 * 1024


@cache
def kept(target: str) -> tuple[bytes, ...]:
    """The kept inputs of a target."""
    path = FOLDER / f"{target}.txt"
    return tuple(b64decode(line) for line in path.read_text().split()) if path.exists() else ()


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Replace the kept inputs of a target."""
    FOLDER.mkdir(exist_ok=True)
    lines = [b64encode(data).decode() for data in sorted(set(inputs), key=lambda d: (len(d), d))]
    (FOLDER / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines))
    kept.cache_clear()
