"""Explore the project's state machines: all sequences of events, to a depth.

    python -m tests.simulation.exhaustive [--machine NAME]... [--depth N | --quick]

Exit code 1, with a shortest counterexample, if an invariant is violated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.exhaustive.counts import note_counts
from tests.simulation.exhaustive.plans import PLANS, ExplorationPlan


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    names = options.machine or [name for name, plan in PLANS.items() if plan.sound]
    found = 0
    for name in names:
        plan = PLANS[name]
        sys.stdout.write(f"{name}: ")
        sys.stdout.flush()
        found |= _explore(plan, _depth(plan, options), options.counts)
    return found


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.exhaustive", description=__doc__
    )
    parser.add_argument(
        "--machine", action="append", choices=PLANS, help="only this one; may be repeated"
    )
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--depth", type=int, help="events after the beginning")
    depth.add_argument("--quick", action="store_true", help="as deep as the tests go")
    parser.add_argument("--counts", type=Path, help="a JSON file for what was counted")
    return parser.parse_args(arguments)


def _depth(plan: ExplorationPlan, options: argparse.Namespace) -> int:
    if options.depth is not None:
        return int(options.depth)
    return plan.quick_depth if options.quick else plan.full_depth


def _explore(plan: ExplorationPlan, depth: int, counts: Path | None) -> int:
    began_s = time.monotonic()
    done = plan.run(depth)
    took_s = time.monotonic() - began_s
    sys.stdout.write(
        f"depth {done.depth}, {done.states:,} states, {done.transitions:,} transitions,"
        f" {done.settled:,} left in peace, {took_s:.1f} s\n"
    )
    if done.counterexample is not None:
        sys.stdout.write(f"{done.counterexample}\n")
        return 1
    if counts is not None:
        note_counts(counts, plan.world.name, done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
