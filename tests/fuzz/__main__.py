"""Run hostile inputs through every target.

python -m tests.fuzz [--inputs 300000] [--seed 0] [--jobs 2] [--target NAME]
python -m tests.fuzz --target NAME --input NUMBER
python -m tests.fuzz --target NAME --file build/fuzz/NAME-NUMBER.bin
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.engine import (
    FINDINGS,
    SEED_STRIDE,
    Finding,
    finding,
    judged,
)
from tests.fuzz.processes import prepare, run_batch
from tests.fuzz.targets.all import SHARES, TARGETS
from tests.fuzz.work import WORK_MS_MAX, slowness

INPUTS = 300_000
BATCH = 2_000  # inputs that a process runs at a time
FINDINGS_MAX = 20
PROGRESS = 1_000_000  # inputs after which a long run says how far it is


def main() -> int:
    asked = _parser().parse_args()
    if asked.input is not None or asked.file is not None:
        return _replay(asked.target[0], asked.input, asked.file)
    names = asked.target or list(TARGETS)
    found: dict[tuple[str, str], Finding] = {}
    more = 0
    started = time.perf_counter()
    batches = list(_batches(names, asked.inputs, asked.seed))
    run: dict[str, tuple[int, float]] = {}
    whole = sum(count for _, _, count in batches)
    total = 0
    with ProcessPoolExecutor(asked.jobs, get_context("spawn"), initializer=prepare) as pool:
        for name, count, cpu_s, findings in pool.map(run_batch, batches):
            before = run.get(name, (0, 0.0))
            run[name] = (before[0] + count, before[1] + cpu_s)
            total += count
            if total // PROGRESS > (total - count) // PROGRESS:
                took_s = time.perf_counter() - started
                _say(f"{total:,} of {whole:,} inputs in {took_s:.0f} s, {len(found)} findings")
            for each in findings:
                if (each.target, each.kind) in found or len(found) >= FINDINGS_MAX:
                    more += 1
                else:
                    found[each.target, each.kind] = each
                    _say(f"{_written(each)}\n")
    for name, (count, cpu_s) in run.items():
        _say(f"{name}: {count:,} inputs, {cpu_s:.1f} s of CPU time")
    _say(f"{total:,} inputs of seed {asked.seed} in {time.perf_counter() - started:.0f} s")
    if found:
        _say(f"{len(found)} findings in {FINDINGS}, and {more} more of the same kinds")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=INPUTS, help="how many, in all targets")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other inputs")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--target", action="append", default=[], choices=list(TARGETS))
    parser.add_argument("--input", type=int, help="replay the input of this number")
    parser.add_argument("--file", type=Path, help="replay the input in this file")
    return parser


def _batches(names: list[str], inputs: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """Name, first number and count of what a process runs at a time; targets take turns."""
    shares = {target.name: share for target, share in SHARES.items() if target.name in names}
    whole = sum(shares.values())
    left = {
        name: max(1, round(inputs * share / whole / TARGETS[name].cost()))
        for name, share in shares.items()
    }
    first = dict.fromkeys(shares, seed * SEED_STRIDE)
    while left:
        for name in list(left):
            count = min(left[name], max(1, BATCH // TARGETS[name].cost()))
            yield name, first[name], count
            first[name] += count
            left[name] -= count
            if not left[name]:
                del left[name]


def _written(found: Finding) -> str:
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{found.target}-{found.number}.bin"
    path.write_bytes(found.data)
    return found.report(path)


def _replay(name: str, number: int | None, path: Path | None) -> int:
    target = TARGETS[name]
    data = path.read_bytes() if path is not None else target.draw(number or 0)
    _say(f"{name}: {len(data)} bytes, {data[:64].hex()}{'…' if len(data) > 64 else ''}")
    try:
        judged(target, data, memory=True, work_ms_max=WORK_MS_MAX * slowness())
    except Exception as error:
        _say(finding(target, number or 0, data, error).text)
        return 1
    _say("all laws hold")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
