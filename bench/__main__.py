"""`python -m bench [--quick] [--only NAME]… [--peer NAME]… [--groups N]`: run, print, write."""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
from pathlib import Path

from rich.console import Console

from bench import model, report
from bench.peers import PEERS
from bench.run import run
from bench.workloads import WORKLOADS

BUILD = Path(__file__).resolve().parents[1] / "build"


def main() -> int:
    arguments = _arguments()
    console = Console(width=None if sys.stdout.isatty() else report.WIDTH)
    progress = Console(stderr=True)
    peers = [each for each in PEERS if not arguments.peer or each.name in arguments.peer]
    workloads = [
        each
        for each in WORKLOADS
        if not arguments.only or any(word in each.name for word in arguments.only)
    ]
    if not workloads:
        console.print("no such workload; there are " + ", ".join(each.name for each in WORKLOADS))
        return 2
    measures = [measure for workload in workloads for measure in workload.measures]
    scale = model.QUICK if arguments.quick else model.FULL
    if arguments.groups:
        scale = dataclasses.replace(scale, crowd_groups=arguments.groups, rounds=1)
    # Ended either way, the peers end as well and what was measured is shown.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results = run(workloads, peers, scale, lambda words: progress.print(words, markup=False))
    report.print_table(results, measures, peers, console)
    report.write_json(
        BUILD / "bench.json", results, measures, peers, "quick" if arguments.quick else "full"
    )
    drawn = report.write_plot(BUILD / "bench.png", results, measures)
    console.print("written: build/bench.json" + (", build/bench.png" if drawn else ""))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compare with the peers.")
    parser.add_argument("--quick", action="store_true", help="less work and fewer rounds")
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="only workloads whose name holds NAME"
    )
    parser.add_argument(
        "--peer", action="append", choices=[each.name for each in PEERS], help="only these peers"
    )
    parser.add_argument(
        "--groups",
        type=int,
        metavar="N",
        help="one round, in which the workload crowd makes so many groups (full: 100,000)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
