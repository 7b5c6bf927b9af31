"""Hunting a planted bug: schedule after schedule, until a law is broken."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import NamedTuple

from mockbroker.simulation.laws import Violation
from mockbroker.simulation.many import result_of
from tests.simulation.planted.planting import Planted, load_all

SCHEDULES = 2_000
PATIENCE_S = 30  # a schedule takes a tenth of a second
COMES_TO_AN_END = "a simulation comes to its end"


class Hunt(NamedTuple):
    """What came of a hunt. Without a `law` the bug was not found on any of the `schedules`.

    `audit` is what the audit says of the history that broke the law, empty if it was not asked.
    """

    name: str
    schedules: int  # how many were run; the last one broke the law
    law: str
    seen: str
    audit: str = ""

    def __str__(self) -> str:
        if not self.law:
            return f"not found on {self.schedules} schedules"
        return f"{self.schedules} schedules, {self.law}: {self.seen}"


class _HangError(BaseException):  # so that nobody on the way catches it
    """A schedule does not come to its end."""


@contextmanager
def _impatient(patience_s: int) -> Iterator[None]:
    """Raise _HangError in the main thread when it takes longer."""

    def give_up(_: int, __: FrameType | None) -> None:
        raise _HangError

    former = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(patience_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def violations(seed: int) -> list[Violation]:
    """The laws that the schedule of a seed breaks. A hang is a broken law, too."""
    try:
        with _impatient(PATIENCE_S):
            return result_of(seed).violations
    except _HangError:
        return [Violation(COMES_TO_AN_END, f"it hangs for {PATIENCE_S} s", -1, -1)]


def violations_with(bug: Planted, seed: int) -> list[Violation]:
    """The laws that the schedule of a seed breaks with a bug, if it breaks none without."""
    with bug.plant():
        found = violations(seed)
    return [] if found and violations(seed) else found


def hunt(name: str, schedules: int) -> Hunt:
    """Run schedules from seed 0 on until a law is broken that holds without the bug."""
    bug = load_all()[name]
    for seed in range(schedules):
        found = violations_with(bug, seed)
        if found:
            return Hunt(name, seed + 1, found[0].law, found[0].message)
    return Hunt(name, schedules, "", "")


def hunts(names: Iterable[str], schedules: int, jobs: int) -> Iterator[Hunt]:
    """Hunt many bugs, in several processes if wanted; results as they come, in order."""
    one = partial(hunt, schedules=schedules)
    if jobs <= 1:
        yield from map(one, names)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(one, names)
