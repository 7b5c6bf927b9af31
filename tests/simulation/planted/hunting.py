"""Hunting planted bugs: schedule after schedule, until a law is broken.

Most schedules do not come near most bugs. So several bugs are hunted at once, and tried one by one
only where a law is broken.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from mockbroker.cli.simulation_audit import AUDIT
from mockbroker.simulation.laws import Violation
from mockbroker.simulation.laws.base import TIME_GOES_ON
from mockbroker.simulation.many import result_of
from tests.simulation.planted.auditing import anomalies
from tests.simulation.planted.planting import Planted, PlantingError, load_all
from tests.support.cpu_limit import cpu_limit

SCHEDULES = 2_000
PATIENCE_S = 8  # of CPU; a schedule takes a tenth of a second


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


def violations(seed: int) -> list[Violation]:
    """The laws that the schedule of a seed breaks. A hang is a broken law, too."""
    try:
        with cpu_limit(PATIENCE_S, _HangError()):
            return result_of(seed).violations
    except _HangError:
        return [Violation(TIME_GOES_ON, "it does not end", -1, -1)]


def violations_with(bugs: Iterable[Planted], seed: int) -> list[Violation]:
    """The laws that the schedule of a seed breaks with bugs planted.

    Raises PlantingError where two of them are in each other's way.
    """
    with ExitStack() as stack:
        planted = [bug for bug in bugs if stack.enter_context(bug.plant()) is None]
        return judged(seed, by_audit=any(bug.audited for bug in planted))


def judged(seed: int, *, by_audit: bool) -> list[Violation]:
    """The laws that a schedule breaks, or what the audit calls a bug in its history."""
    if not by_audit:
        return violations(seed)
    return [Violation(AUDIT, anomaly, -1, -1) for anomaly in anomalies(seed) or ()]


def hunt(names: Iterable[str], schedules: int, first_seed: int = 0) -> Iterator[Hunt]:
    """Run schedules with all these bugs at once, until each is found.

    Where a law is broken, each bug is tried alone: that shows which of them breaks it. A schedule
    that breaks a law without any bug proves nothing.
    """
    bugs = load_all()
    left = [bugs[name] for name in names]
    for seed in range(first_seed, schedules):
        if not left:
            return
        by_audit = any(bug.audited for bug in left)
        if not violations_with(left, seed) or judged(seed, by_audit=by_audit):
            continue
        for bug in list(left):
            found = violations_with([bug], seed)
            if found:
                left.remove(bug)
                yield Hunt(bug.name, seed + 1, found[0].law, found[0].message, _judged(bug, seed))
    for bug in left:
        yield Hunt(bug.name, schedules, "", "")


def _judged(bug: Planted, seed: int) -> str:
    """The anomalies that the audit calls bugs, by their names; empty where it sees none."""
    try:
        with cpu_limit(PATIENCE_S, _HangError()), bug.plant():
            return ", ".join(anomalies(seed) or ())
    except (_HangError, Exception):  # then there is no history to judge
        return ""


def companies(names: Iterable[str], together: int) -> list[list[str]]:
    """Bugs that are hunted together, at most so many, and none in the way of another."""
    bugs = load_all()
    made: list[list[str]] = []
    for name in names:
        for company in made:
            if len(company) < together and _get_along([bugs[each] for each in (*company, name)]):
                company.append(name)
                break
        else:
            made.append([name])
    return made


def _get_along(bugs: Iterable[Planted]) -> bool:
    with ExitStack() as stack:
        try:
            audited = {bug.audited for bug in bugs if stack.enter_context(bug.plant()) is None}
        except PlantingError:
            return False
    return len(audited) == 1


def hunts(
    first_seeds: Mapping[str, int], schedules: int, jobs: int, together: int
) -> Iterator[Hunt]:
    """Hunt many bugs, each from a seed on, in several processes if wanted; results as they come."""
    made: list[tuple[int, list[str]]] = []
    for first in sorted(set(first_seeds.values())):
        same = [name for name, seed in first_seeds.items() if seed == first]
        made += [(first, company) for company in companies(same, together)]
    if jobs <= 1:
        for first, company in made:
            yield from hunt(company, schedules, first)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for found in pool.map(partial(_hunted, schedules=schedules), made):
            yield from found


def _hunted(company: tuple[int, list[str]], schedules: int) -> list[Hunt]:
    return list(hunt(company[1], schedules, company[0]))
