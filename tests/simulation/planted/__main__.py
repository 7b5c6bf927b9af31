"""Run the simulator with every planted bug, and write down what finds it.

python -m tests.simulation.planted [--bug NAME] [--schedules 2000] [--jobs 1] [--resume]
"""

from __future__ import annotations

import argparse
import sys

from tests.simulation.planted.hunting import SCHEDULES, hunts
from tests.simulation.planted.planting import load_all
from tests.simulation.planted.results import RESULTS, read, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="planted", description=__doc__)
    parser.add_argument("--bug", action="append", default=[], help="only this one")
    parser.add_argument("--area", default="", help="only bugs of this area")
    parser.add_argument("--schedules", type=int, default=SCHEDULES, help="how many to try a bug on")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--together", type=int, default=12, help="how many bugs at once")
    parser.add_argument(
        "--resume", action="store_true", help="only bugs not found yet, from where they were left"
    )
    asked = parser.parse_args()
    bugs = load_all()
    unknown = [name for name in asked.bug if name not in bugs]
    if unknown:
        parser.error(f"there is no bug named {', '.join(unknown)}")
    known = read(RESULTS)
    wanted = [
        name
        for name, bug in bugs.items()
        if (not asked.bug or name in asked.bug)
        and (not asked.area or bug.area == asked.area)
        and not (asked.resume and name in known and known[name].law)
    ]
    firsts = {
        name: known[name].schedules if asked.resume and name in known else 0 for name in wanted
    }
    missed = 0
    for hunt in hunts(firsts, asked.schedules, asked.jobs, asked.together):
        missed += not hunt.law
        sys.stdout.write(f"{hunt.name}: {hunt}\n")
        sys.stdout.flush()
        write(RESULTS, {**read(RESULTS), hunt.name: hunt}, bugs)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
