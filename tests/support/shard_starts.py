"""What a coordinator starts when it has loaded a partition: in turns of two, in these tests."""

from __future__ import annotations

from typing import Any

from mockbroker.core.coordinator.shard import CoordinatorShard


def check_start_in_turns(
    shard: CoordinatorShard[Any], started: list[str], *, unloaded: bool
) -> None:
    """Start the shard's "a" to "e", whose names come to `started`."""
    turns = shard.on_loaded()
    next(turns)
    assert started == ["a", "b"]
    if unloaded:
        shard.unload()
    assert [len(started) for _ in turns] == ([] if unloaded else [4])
    assert len(started) == (2 if unloaded else 5)
