"""Run hostile inputs through every target.

python -m tests.fuzz [--inputs 300000] [--seed 0] [--jobs 2] [--target NAME] [--resume]
python -m tests.fuzz --target NAME --input NUMBER
python -m tests.fuzz --target NAME --file build/fuzz/NAME-NUMBER.bin
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.engine import FINDINGS, ROOT, SEED_STRIDE, Finding, finding, judged
from tests.fuzz.processes import prepare, run_batch
from tests.fuzz.progress import CODE, Progress
from tests.fuzz.targets.all import SHARES, TARGETS
from tests.fuzz.work import WORK_MS_MAX, slowness
from tests.support.saved_runs import code_hash

INPUTS = 300_000
BATCH = 2_000  # inputs that a process runs at a time
FINDINGS_MAX = 20
PROGRESS = 1_000_000  # inputs after which a long run says how far it is


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    if asked.input is not None or asked.file is not None:
        return _replay(asked.target[0], asked.input, asked.file)
    names = asked.target or list(TARGETS)
    code = code_hash(ROOT, CODE)
    run = Progress(names=names, inputs=asked.inputs, seed=asked.seed, code=code)
    if asked.resume:
        try:
            run = run.resumed()
        except ValueError as error:
            _say(str(error))
            return 2
        _say(f"{run.total:,} inputs are done")
    try:
        _run(run, asked.jobs)
    except KeyboardInterrupt:
        _say(f"stopped after {run.total:,} inputs; the same command with --resume goes on")
        return 130
    for name, each in run.targets.items():
        _say(f"{name}: {each.inputs:,} inputs, {each.cpu_s:.1f} s of CPU time")
    _say(f"{run.total:,} inputs of seed {run.seed} in {run.took_s:.0f} s")
    if run.findings:
        found = len(run.findings)
        _say(f"{found} findings in {FINDINGS}, and {run.more_findings} more of the same kinds")
    return 1 if run.findings else 0


def _run(run: Progress, jobs: int) -> None:
    """Run the batches that are left."""
    batches = list(_batches(run.names, run.inputs, run.seed))
    whole = sum(count * TARGETS[name].cost() for name, _, count in batches)
    started_s = time.perf_counter() - run.took_s
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=prepare) as pool:
        try:
            for name, count, cpu_s, findings in pool.map(run_batch, batches[run.batches :]):
                for each in findings:
                    if (each.target, each.kind) in run.findings or (
                        len(run.findings) >= FINDINGS_MAX
                    ):
                        run.more_findings += 1
                    else:
                        run.findings.append((each.target, each.kind))
                        _say(f"{_written(each)}\n")
                before = run.total
                run.add(name, count, cpu_s)
                run.took_s = time.perf_counter() - started_s
                if run.total // PROGRESS > before // PROGRESS:
                    _say(
                        f"{run.total:,} of {whole:,} inputs in {run.took_s:.0f} s, "
                        f"{len(run.findings)} findings"
                    )
                run.save()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=INPUTS, help="how many, in all targets")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other inputs")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--target", action="append", default=[], choices=list(TARGETS))
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
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
