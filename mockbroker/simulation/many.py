"""Runs of many seeds, in one process or several."""

from __future__ import annotations

import multiprocessing
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from typing import NamedTuple

from mockbroker.simulation.laws import Violation
from mockbroker.simulation.laws.base import NO_FAILURES
from mockbroker.simulation.running import Mode, simulate

SEEDS_A_TASK = 5


class SeedResult(NamedTuple):
    """The result of one seed, without its world, to be sent between processes."""

    seed: int
    violations: list[Violation]
    counts: Counter[str]
    digest: str
    failure: str = ""  # the traceback of an exception, where there was one


def result_of(seed: int, mode: Mode = "fast") -> SeedResult:
    """Simulate a seed; an exception is a violation of the law `NO_FAILURES`."""
    try:
        outcome = simulate(seed, mode)
    except Exception as error:  # a fault of the cluster's, or of the simulator's
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        violation = Violation(NO_FAILURES, where, -1, -1)
        return SeedResult(seed, [violation], Counter(), "", traceback.format_exc())
    return SeedResult(seed, outcome.violations, outcome.counts, outcome.digest)


def results(seeds: Iterable[int], jobs: int, mode: Mode = "fast") -> Iterator[SeedResult]:
    """The results of many seeds, in the order of completion; with one job in that of the seeds."""
    if jobs <= 1:
        for seed in seeds:
            yield result_of(seed, mode)
        return
    left = iter(seeds)
    # No fork: the parent may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        under_way: set[Future[list[SeedResult]]] = set()
        while True:
            while len(under_way) < jobs * 2:
                some = list(islice(left, SEEDS_A_TASK))
                if not some:
                    break
                under_way.add(pool.submit(_results_of, some, mode))
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield from future.result()


def _results_of(seeds: list[int], mode: Mode) -> list[SeedResult]:
    return [result_of(seed, mode) for seed in seeds]
