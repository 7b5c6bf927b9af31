"""`python -m tests.mutation [--size N] [--seed N] [--all] [--package NAME]`: judge mutants.

Prints each survivor as it is found and the rate that was killed in each package, and writes every
verdict to `build/mutants.jsonl`. The exit code is 1 if a package is below `RATE_MIN`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mutation import judge, mirror

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
LISTING = Path(__file__).with_name("listing.py")
PACKAGES = ("log", "replication", "groups", "share", "streams", "transactions", "audit")

RATE_MIN = 0.9
CPU_FACTOR, CPU_SPARE_S = 4, 20
WALL_FACTOR = 20
EQUAL = "equivalent"
KEPT = {judge.KILLED, judge.OUT_OF_TIME}

Mutant = dict[str, Any]


def listed(python: str, root: Path, arguments: argparse.Namespace) -> Iterator[Mutant]:
    """The mutants, in the order of the packages."""
    command = [python, str(LISTING), "--root", str(root), "--seed", str(arguments.seed)]
    if not arguments.all:
        command += ["--size", str(arguments.size)]
    for package in arguments.package or ():
        command += ["--package", package]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None
        for line in listing.stdout:
            yield json.loads(line)
    if listing.returncode:
        raise SystemExit(f"the listing failed: exit code {listing.returncode}")


def equivalents() -> dict[tuple[str, str, str], str]:
    """(path, line before, line after) → why nobody can tell."""
    data = tomllib.loads(EQUIVALENT.read_text("utf-8"))
    return {(each["path"], each["before"], each["after"]): each["why"] for each in data["mutants"]}


def place(mutant: Mutant) -> tuple[str, ...]:
    """What tells a mutant from others."""
    return tuple(str(mutant[name]) for name in ("path", "line", "operator", "before", "after"))


def former(path: Path) -> dict[tuple[str, ...], Mutant]:
    """The verdicts of a run before, but for those on survivors: their tests may have changed."""
    if not path.exists():
        return {}
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {place(each): each for each in found if each["verdict"] in KEPT}


class Bench:
    """Judges one mutant after the other."""

    def __init__(self, copy: judge.Copy, output: Path, *, own_only: bool = False) -> None:
        self.copy = copy
        self.output = output
        self._own_only = own_only
        self._unchanged_s: dict[tuple[str, ...], float] = {}

    def verdict(self, mutant: Mutant) -> Mutant:
        """The mutant with `verdict`, `by` (which tests, "own" or "further"), `cpu_s`, `failed`."""
        root, path = self.copy.root, mutant["path"]
        stages = {
            "own": mirror.own_tests(root, path),
            "further": () if self._own_only else mirror.further_tests(root, mutant["package"]),
        }
        used_s = 0.0
        for stage, tests in stages.items():
            if not tests:
                continue
            outcome = self._run(path, mutant["text"], tests)
            used_s += outcome.cpu_s
            if outcome.verdict in {judge.KILLED, judge.OUT_OF_TIME}:
                found = {"verdict": outcome.verdict, "by": stage, "failed": outcome.failed}
                return found | {"cpu_s": round(used_s, 1)}
        return {"verdict": judge.SURVIVED, "by": "", "failed": "", "cpu_s": round(used_s, 1)}

    def _run(self, path: str, text: str, tests: tuple[str, ...]) -> judge.Outcome:
        ordered = mirror.quickest_first(tests, self.copy.root)
        unchanged_s = self._unchanged(ordered)
        with self.copy.changed(path, text):
            return judge.run(ordered, *_limits(unchanged_s), self.output)

    def _unchanged(self, tests: list[str]) -> float:
        """The CPU time that tests take without a change; they have to pass."""
        key = tuple(tests)
        if key not in self._unchanged_s:
            outcome = judge.run(tests, *_limits(300.0), self.output)
            if outcome.verdict != judge.SURVIVED:
                raise SystemExit(f"without a change: {outcome}\n{self.output.read_text('utf-8')}")
            self._unchanged_s[key] = outcome.cpu_s
        return self._unchanged_s[key]


def _limits(unchanged_s: float) -> tuple[float, float]:
    """The most CPU time and the most time that a run may take."""
    cpu_s = CPU_FACTOR * unchanged_s + CPU_SPARE_S
    return cpu_s, WALL_FACTOR * cpu_s


def rates(verdicts: list[Mutant]) -> dict[str, float]:
    """The part of the mutants that was killed, by package; equivalent ones do not count."""
    found = {}
    for package in PACKAGES:
        counts = Counter(each["verdict"] for each in verdicts if each["package"] == package)
        counted = counts.total() - counts[EQUAL]
        if counted:
            found[package] = 1 - counts[judge.SURVIVED] / counted
    return found


def report(verdicts: list[Mutant]) -> None:
    rate = rates(verdicts)
    for package in rate:
        some = [each for each in verdicts if each["package"] == package]
        counts = Counter(each["verdict"] for each in some)
        own = sum(each["by"] == "own" for each in some)
        print(
            f"{package:13}{rate[package]:7.1%} killed: {len(some)} mutants, {own} killed by the"
            f" module's own tests, {counts[judge.OUT_OF_TIME]} out of time,"
            f" {counts[EQUAL]} equivalent, {counts[judge.SURVIVED]} survived"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.mutation", description=__doc__)
    parser.add_argument("--size", type=int, default=200, help="mutants in all (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="every mutant; takes days")
    parser.add_argument("--package", action="append", choices=PACKAGES)
    parser.add_argument(
        "--resume", action="store_true", help="what was killed in the run before is not judged anew"
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="only by the module's own tests; --resume judges the rest",
    )
    parser.add_argument(
        "--listing-python",
        type=lambda given: str(Path(given).absolute()),  # the judge goes to another directory
        default=sys.executable,
        help="one that has cosmic-ray",
    )
    arguments = parser.parse_args()
    copy = judge.Copy(ROOT, ROOT / ".cache" / "mutants" / "tree")
    mutants = listed(arguments.listing_python, copy.root, arguments)
    verdicts_path = ROOT / "build" / "mutants.jsonl"
    verdicts_path.parent.mkdir(exist_ok=True)
    judge.preload(copy.root)
    known = equivalents()
    bench = Bench(copy, copy.root.parent / "output.txt", own_only=arguments.own)
    judged = former(verdicts_path) if arguments.resume else {}
    verdicts: list[Mutant] = []
    with verdicts_path.open("w", encoding="utf-8") as file:
        for mutant in mutants:
            why = known.get((mutant["path"], mutant["before"], mutant["after"]))
            found = judged.get(place(mutant))
            if why is not None:
                found = {"verdict": EQUAL, "by": "", "failed": why, "cpu_s": 0.0}
            elif found is None:
                found = bench.verdict(mutant)
            shown = {name: value for name, value in mutant.items() if name != "text"} | found
            verdicts.append(shown)
            file.write(json.dumps(shown) + "\n")
            file.flush()
            if found["verdict"] == judge.SURVIVED:
                print(
                    f"survived: {mutant['path']}:{mutant['line']} ({mutant['operator']})\n"
                    f"  - {mutant['before']}\n  + {mutant['after']}",
                    flush=True,
                )
    report(verdicts)
    return int(any(rate < RATE_MIN for rate in rates(verdicts).values()))


if __name__ == "__main__":
    sys.exit(main())
