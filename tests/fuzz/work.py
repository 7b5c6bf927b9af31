"""How much work an input takes, on whatever machine, and how much memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache

from tests.support.traced import traced

WORK_MS_MAX = 250.0
"""In ms of the reference machine, on which `_reference` takes REFERENCE_MS."""
REFERENCE_MS = 10.0
REPEATS = 3
HANGS_S = 60.0  # of CPU time: no input takes a hundredth of it
MEMORY_BYTES_MIN = 1 << 20


class Broken(Exception):  # noqa: N818
    """An input broke a law."""


def _reference() -> int:
    """Calls, attributes, small integers and small objects, as in a decoder."""
    total = 0
    kept: list[tuple[int, bytes]] = []
    data = bytes(range(256))
    for index in range(32_000):
        at = index & 0xFF
        total += data[at] ^ index
        kept.append((total, data[at : at + 4]))
        if len(kept) == 512:
            kept.clear()
    return total


def _cpu_ms(function: Callable[[], object]) -> float:
    started = time.thread_time()
    function()
    return (time.thread_time() - started) * 1000


def slowness() -> float:
    """How many times slower than the reference machine this one is at the moment."""
    return min(_cpu_ms(_reference) for _ in range(3)) / REFERENCE_MS


@cache
def quick_ms() -> float:
    """The CPU time in ms of this machine up to which nothing is looked at more closely.

    It is half of the limit: the machine may become faster. It is measured once, because that takes
    as long as an input with many requests.
    """
    return WORK_MS_MAX * slowness() / 2


def check_work(run: Callable[[], object], first_ms: float) -> None:
    """Judge an input that took `first_ms` of CPU time: run it again, beside the reference.

    Raises Broken if it takes too much each time.
    """
    least = first_ms / slowness()
    for _ in range(REPEATS):
        if least <= WORK_MS_MAX:
            return
        gc.collect()
        least = min(least, _cpu_ms(run) / slowness())
    if least > WORK_MS_MAX:
        raise Broken(f"takes {least:.0f} ms of work; the law allows {WORK_MS_MAX:.0f}")


def check_steps(run: Callable[[], dict[str, float]]) -> None:
    """Judge a session by the step with the most work. `run` returns the CPU time of each, in ms.

    Raises Broken if the same step takes too much in each run.
    """
    took = run()
    if max(took.values(), default=0.0) <= quick_ms():
        return
    scale = slowness()
    for _ in range(REPEATS):
        if max(took.values()) <= WORK_MS_MAX * scale:
            return
        gc.collect()  # the garbage of former sessions is not this one's work
        again = run()
        took = {step: min(ms, again.get(step, 0.0)) for step, ms in took.items()}
        scale = max(scale, slowness())
    step, ms = max(took.items(), key=lambda each: each[1])
    if ms > WORK_MS_MAX * scale:
        raise Broken(f"takes {ms / scale:.0f} ms of work: {step}")


def check_memory(run: Callable[[], object], bytes_max: int) -> None:
    """Run an input and raise Broken if its peak of memory is above `bytes_max`.

    What is built once, such as an emitted codec, is there in the second run.
    """
    peak = 0
    for _ in range(2):
        with traced() as memory:
            run()
        peak = memory.peak
        if peak <= bytes_max:
            return
    raise Broken(f"takes {peak:,} bytes of memory; the law allows {bytes_max:,}")
