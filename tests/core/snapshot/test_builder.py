"""Frames that follow each other, but hold what nobody can understand."""

from __future__ import annotations

import pytest

from mockbroker.core.snapshot.builder import Builder
from mockbroker.core.snapshot.changes import ENCODER, ClusterDelta, Stage
from mockbroker.core.snapshot.frames import DamageError, Frame


@pytest.mark.parametrize("settings", [b"\xc1", b"\x91" * 100_000, b"\x01"])
def test_settings_that_cannot_be_understood_are_damage_at_their_frame(settings: bytes) -> None:
    head = ENCODER.encode(ClusterDelta(Stage.PART, 0, 0, 0, settings))
    with pytest.raises(DamageError) as raised:
        Builder().add(Frame(4711, 4800, head, b""))
    assert raised.value.offset == 4711
