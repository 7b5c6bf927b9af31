"""Targets, and the loop that runs inputs through them and judges by the laws."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.work import (
    HANGS_S,
    MEMORY_BYTES_MIN,
    WORK_MS_MAX,
    Broken,
    check_memory,
    check_steps,
    check_work,
    quick_ms,
)
from tests.support.cpu_limit import cpu_limit

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "build" / "fuzz"
SEED_STRIDE = 10**10
"""Seed 7 runs the inputs from 7 × 10¹⁰ on; so one number says both."""
MEMORY_SHARE = 32  # one input of so many is run with tracemalloc
SHRINKS_MAX = 300
SHRINK_S = 20.0  # of CPU time: an input that hangs takes a minute each time
HEX_BYTES_MAX = 256


class Target:
    """One way in for bytes of strangers. Subclasses override `draw` and `check`."""

    name: str
    modules: tuple[str, ...] = ()
    """The modules whose lines count when the corpus is made."""
    judges_itself = False
    """Whether `check` sees to work and memory."""

    def draw(self, number: int) -> bytes:
        """The input of this number. Depends on the number, the corpus and the source only."""
        raise NotImplementedError

    def check(self, data: bytes) -> None:
        """Run an input. Raises what a law forbids: Broken, or any exception that gets out."""
        raise NotImplementedError

    def memory_bytes_max(self, data: bytes) -> int:
        """What the input may take."""
        return 2 * len(data) + MEMORY_BYTES_MIN

    def rng(self, number: int) -> random.Random:
        """The generator of one input."""
        return random.Random(f"{self.name} {number}")

    def cost(self) -> int:
        """How many inputs one call of `check` counts as: a session has many requests."""
        return 1


class SessionTarget(Target):
    """A target whose input is a session's number in eight bytes. Subclasses override `run`."""

    judges_itself = True

    def draw(self, number: int) -> bytes:
        return number.to_bytes(8, "big")

    def check(self, data: bytes) -> None:
        if len(data) == 8:
            seed = int.from_bytes(data, "big")
            check_steps(lambda: self.run(seed))

    def run(self, seed: int) -> dict[str, float]:
        """Run a session; returns the CPU time of each step, in ms. Raises Broken."""
        raise NotImplementedError


class Finding(NamedTuple):
    """An input that broke a law. `kind` is equal for findings of one cause, mostly."""

    target: str
    number: int
    data: bytes
    kind: str
    text: str

    def report(self, path: Path) -> str:
        """What a person needs in order to see it again."""
        lines = [
            f"{self.target}: {self.kind}",
            self.text.rstrip(),
            f"{len(self.data)} bytes: {path}",
            f"replay: make fuzz ARGS='--target {self.target} --input {self.number}'",
            f"    or: make fuzz ARGS='--target {self.target} --file {path}'",
        ]
        if len(self.data) <= HEX_BYTES_MAX:
            lines += [
                "as a test:",
                f"    def test_{self.target}_{self.number}() -> None:",
                f'        TARGETS["{self.target}"].check(bytes.fromhex("{self.data.hex()}"))',
            ]
        return "\n".join(lines)


class _Hang(BaseException):
    """An input that does not end. Not an Exception: handlers answer those and go on."""


def judged(
    target: Target, data: bytes, *, memory: bool, work_ms_max: float, hangs_s: float = HANGS_S
) -> None:
    """Run an input under all laws. `work_ms_max` is CPU time of this machine above which it is
    looked at more closely. Raises Broken, or what the target raises.
    """

    def run() -> None:
        target.check(data)

    try:
        with cpu_limit(hangs_s, _Hang()):
            started = time.thread_time()
            run()
            took_ms = (time.thread_time() - started) * 1000
            if target.judges_itself:
                return
            if took_ms > work_ms_max:
                check_work(run, took_ms)
            if memory:
                check_memory(run, target.memory_bytes_max(data))
    except _Hang as hang:
        broken = Broken(f"does not end within {hangs_s:.0f} s of CPU time")
        raise broken.with_traceback(hang.__traceback__) from None


def run_inputs(target: Target, numbers: range) -> Iterator[Finding]:
    """Run inputs by number; yields each that breaks a law."""
    for number in numbers:
        data = target.draw(number)
        try:
            judged(target, data, memory=number % MEMORY_SHARE == 0, work_ms_max=quick_ms())
        except Exception as error:
            yield finding(target, number, data, error)


def finding(target: Target, number: int, data: bytes, error: Exception) -> Finding:
    return Finding(
        target.name, number, data, kind_of(error), "".join(traceback.format_exception(error)[-8:])
    )


def kind_of(error: BaseException) -> str:
    """The type of an error and its innermost line: the cause, mostly."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    where = f"{Path(last.filename).name}:{last.lineno}" if last is not None else ""
    if isinstance(error, Broken):
        return " ".join(str(error).split(" ")[:3])
    return f"{type(error).__name__} in {where}"


def shrunk(target: Target, found: Finding) -> Finding:
    """The finding with as few bytes as are found in SHRINKS_MAX tries and SHRINK_S."""
    data = found.data
    tries = 0
    ends_s = time.thread_time() + SHRINK_S
    size = len(data) // 2
    while size and tries < SHRINKS_MAX:
        at = 0
        while at < len(data) and tries < SHRINKS_MAX and time.thread_time() < ends_s:
            tries += 1
            shorter = data[:at] + data[at + size :]
            if _same(target, shorter, found.kind):
                data = shorter
            else:
                at += size
        size //= 2
    return found._replace(data=data)


def _same(target: Target, data: bytes, kind: str) -> bool:
    try:
        judged(target, data, memory=False, work_ms_max=WORK_MS_MAX)
    except Exception as error:
        return kind_of(error) == kind
    return False
