"""The counts of the deepest exploration of each state machine, in a JSON file.

They are kept by level, so that a shallow exploration can be compared with a deep one.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.simulation.exhaustive.explorer import Exploration, Level


class Counts(msgspec.Struct, frozen=True):
    """The levels from the start states on, and the number of settled states."""

    levels: tuple[Level, ...]
    settled: int

    @property
    def depth(self) -> int:
        return len(self.levels) - 1

    @property
    def states(self) -> int:
        return sum(level.states for level in self.levels)

    @property
    def transitions(self) -> int:
        return sum(level.transitions for level in self.levels)


def read_counts(path: Path) -> dict[str, Counts]:
    """The counts by machine name; empty if the file does not exist."""
    if not path.exists():
        return {}
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Counts])


def note_counts(path: Path, name: str, done: Exploration) -> bool:
    """Write an exploration to the file, unless the file has a deeper one."""
    counts = read_counts(path)
    before = counts.get(name)
    if before is not None and before.depth > done.depth:
        return False
    counts[name] = Counts(done.levels, done.settled)
    text = msgspec.json.format(msgspec.json.encode(counts, order="sorted"), indent=1)
    path.write_bytes(text + b"\n")
    return True
