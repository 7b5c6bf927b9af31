"""Many of the simulator's plans against three real brokers: `python -m tests.simulation.real`.

The brokers are started once, and each plan is run by ours first. Exit code 1: a law was broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from mockbroker.simulation import Violation, run
from mockbroker.simulation.reporting import summary, table
from tests.support.real_kafka import RealKafka
from tests.support.real_plans import BROKERS, CONFIGS, real_plan
from tests.support.real_run import run_real


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=20, metavar="N")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    broken = 0
    with RealKafka(brokers=BROKERS, configs=CONFIGS) as kafka:
        print(f"three brokers answer after {kafka.start_s:.1f} s", flush=True)
        for seed in range(given.first, given.first + given.plans):
            plan = real_plan(seed)
            print(summary(plan), flush=True)
            broken += _tell("ours", run(plan).violations)
            began_s = time.monotonic()
            outcome = run_real(plan, kafka)
            counts.update(outcome.counts)
            broken += _tell("Kafka", outcome.violations)
            print(f"  {time.monotonic() - began_s:.1f} s", flush=True)
    print(f"{given.plans} plans with Kafka; {broken} broken laws")
    for line in table(counts):
        print(line)
    return 1 if broken else 0


def _tell(who: str, violations: list[Violation]) -> int:
    for violation in violations:
        print(f"  {who}: {violation}", flush=True)
    return len(violations)


if __name__ == "__main__":
    sys.exit(main())
