"""The file of counts: the deepest exploration of each machine."""

from __future__ import annotations

from pathlib import Path

from tests.simulation.exhaustive.counts import note_counts, read_counts
from tests.simulation.exhaustive.explorer import Exploration, Level


def done(*levels: Level) -> Exploration:
    return Exploration(levels, 3, None)


def test_what_was_noted_is_read_back(tmp_path: Path):
    path = tmp_path / "counts.json"
    assert read_counts(path) == {}
    assert note_counts(path, "a", done(Level(1, 0), Level(2, 5)))
    assert note_counts(path, "b", done(Level(1, 0)))
    counts = read_counts(path)
    assert set(counts) == {"a", "b"}
    a = counts["a"]
    assert (a.depth, a.states, a.transitions, a.settled) == (1, 3, 5, 3)


def test_a_shallower_exploration_does_not_displace_a_deeper_one(tmp_path: Path):
    path = tmp_path / "counts.json"
    assert note_counts(path, "a", done(Level(1, 0), Level(2, 5)))
    assert not note_counts(path, "a", done(Level(1, 0)))
    assert read_counts(path)["a"].depth == 1
