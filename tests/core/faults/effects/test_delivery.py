"""Random delays and damaged frames."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

import pytest

from mockbroker.core.faults.effects.delivery import (
    CorruptReply,
    Delay,
    Lognormal,
    Slow,
    TruncateReply,
    corrupted,
)
from mockbroker.core.faults.rules import parse_rule
from mockbroker.core.ids import IdSource
from mockbroker.core.validation import ValidationError

FRAME = (20).to_bytes(4, "big") + (7).to_bytes(4, "big") + bytes(range(16))


def test_uniform_delays_lie_between_their_bounds() -> None:
    stream = IdSource(1)
    drawn = [Delay(uniform=[10, 12]).drawn_ms(stream) for _ in range(200)]
    assert set(drawn) == {10, 11, 12}


def test_lognormal_delays_have_their_median_and_a_tail() -> None:
    stream = IdSource(1)
    delay = Delay(lognormal=Lognormal(100, 1.0))
    drawn = [delay.drawn_ms(stream) for _ in range(2000)]
    assert 85 < statistics.median(drawn) < 115
    assert max(drawn) > 800
    assert min(drawn) >= 0


def test_the_same_stream_gives_the_same_delays() -> None:
    delay = Delay(lognormal=Lognormal(100, 1.0))
    one, other = IdSource(5), IdSource(5)
    assert [delay.drawn_ms(one) for _ in range(9)] == [delay.drawn_ms(other) for _ in range(9)]


@pytest.mark.parametrize(
    ("effect", "size", "cut"),
    [
        (TruncateReply(fraction=0.5), 100, 50),
        (TruncateReply(fraction=1.0), 100, 99),
        (TruncateReply(bytes_=3), 100, 3),
        (TruncateReply(bytes_=300), 100, 99),
    ],
)
def test_a_cut_leaves_less_than_all(effect: TruncateReply, size: int, cut: int) -> None:
    assert effect.cut(size) == cut


def test_bandwidth_is_a_pause_between_slices() -> None:
    assert Slow(bytes_per_s=1000, slice_bytes=500).pause_ms == 500
    assert Slow(pause=7).pause_ms == 7


@pytest.mark.parametrize(
    ("slow", "size", "pause_ms"),
    [
        (Slow(pause=7), 1024, 7),
        (Slow(bytes_per_s=1), 1, 1000),
        (Slow(bytes_per_s=500), 50, 100),
        (Slow(bytes_per_s=1_000_000), 1024, 1),
        (Slow(bytes_per_s=500, slice_bytes=100), 100, 200),
    ],
)
def test_a_short_answer_is_slow_too_because_a_slice_is_what_leaves_in_100_ms(
    slow: Slow, size: int, pause_ms: int
) -> None:
    assert (slow.size, slow.pause_ms) == (size, pause_ms)


@pytest.mark.parametrize(
    ("how", "same"),
    [
        ("wrong_size", slice(4, None)),
        ("oversize", slice(4, None)),
        ("wrong_correlation_id", slice(8, None)),
        ("bit_flips", slice(0, 8)),
        ("garbage", slice(0, 8)),
    ],
)
def test_each_damage_is_in_its_place(how: str, same: slice) -> None:
    effect = CorruptReply(how=how, count=3)  # type: ignore[arg-type]
    damaged = corrupted(FRAME, effect, IdSource(1))
    assert damaged != FRAME
    assert len(damaged) == len(FRAME)
    assert damaged[same] == FRAME[same]
    assert corrupted(FRAME, effect, IdSource(1)) == damaged


def test_noise_fills_a_large_frame_with_one_draw() -> None:
    frame, stream = bytes(10_000_000), IdSource(1)
    damaged = corrupted(frame, CorruptReply(how="garbage"), stream)
    assert damaged[:8] == frame[:8]
    assert min(Counter(damaged[8:]).values()) > 30_000
    stream_of_one_draw = IdSource(1)
    stream_of_one_draw.bits64()
    assert stream.bits64() == stream_of_one_draw.bits64()


@pytest.mark.parametrize(
    ("effects", "wrong"),
    [
        ({"corrupt_reply": {"how": "bit_flips", "count": 10_001}}, "do.corrupt_reply.count"),
        ({"duplicate_records": 1_001}, "do.duplicate_records.times"),
    ],
)
def test_work_of_an_effect_is_bounded(effects: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValidationError) as refused:
        parse_rule({"match": {"api": "Fetch"}, "do": effects}, "", "rule")
    assert refused.value.path == wrong
