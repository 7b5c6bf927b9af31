"""`mockbroker simulate`: clusters with clients and faults, each from one seed.

Exit code 0: every law held. 1: one was broken; the violations, the plan and a test are printed.
2: bad usage, such as a plan with unknown names.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mockbroker.simulation.many import SeedResult
    from mockbroker.simulation.plan import Plan
    from mockbroker.simulation.running import Mode, PlanResult

_FAILURES_SHOWN = 10
_PROGRESS_S = 0.5


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True, metavar="N")
@click.option("--from", "first", type=int, default=0, show_default=True, metavar="SEED")
@click.option("--seed", type=int, metavar="SEED", help="Run only this seed.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run a plan from --out or a failure instead of seeds.",
)
@click.option(
    "--mode",
    type=click.Choice(["fast", "streams"]),
    default="fast",
    show_default=True,
    help="Call handlers directly, or serve connections in memory (slower, closer to a network).",
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory for plans and tests of failures.",
)
@click.option(
    "--shrink/--no-shrink",
    "shrinks",
    default=True,
    show_default=True,
    help="Shrink the plan of the first failure.",
)
@click.option(
    "--audit-every",
    type=click.IntRange(1),
    metavar="N",
    help="Audit each N-th seed over streams; needs the extra pipeline.",
)
def simulate(
    seeds: int,
    first: int,
    seed: int | None,
    plan_file: Path | None,
    mode: Mode,
    jobs: int,
    out: Path | None,
    shrinks: bool,
    audit_every: int | None,
) -> None:
    """Simulate clusters with clients and faults, and check the laws."""
    from mockbroker.simulation.plan import PlanError, read
    from mockbroker.simulation.swarm import generate

    if plan_file is not None:
        try:
            plan = read(plan_file)
        except PlanError as error:
            raise click.UsageError(str(error)) from None
    elif seed is not None:
        plan = generate(seed)
    else:
        status = _many(range(first, first + seeds), mode, jobs, out, shrinks=shrinks)
        if audit_every is not None:
            status |= _audit(range(first, first + seeds, audit_every))
        sys.exit(status)
    sys.exit(_one(plan, mode, out, shrinks=shrinks))


# -- one -------------------------------------------------------------------------------------------


def _one(plan: Plan, mode: Mode, out: Path | None, *, shrinks: bool) -> int:
    from mockbroker.simulation.reporting import summary, table
    from mockbroker.simulation.running import run

    click.echo(summary(plan))
    outcome = run(plan, mode)
    for line in table(outcome.counts):
        click.echo(line)
    click.echo(f"  digest {outcome.digest}")
    if not outcome.violations:
        click.echo("every law holds")
        return 0
    _print_failure(outcome, out, shrinks=shrinks)
    return 1


def _print_failure(outcome: PlanResult, out: Path | None, *, shrinks: bool) -> None:
    """Print the violations, and the smallest plan with them."""
    from mockbroker.simulation.reporting import pytest_of, summary
    from mockbroker.simulation.shrinking import NotReproducedError, shrink

    for violation in outcome.violations:
        click.echo(f"broken: {violation}")
    law = outcome.violations[0].law
    if shrinks:
        try:
            shrunk = shrink(outcome.plan, law, mode=outcome.mode)
        except NotReproducedError as error:
            click.echo(f"not shrunk: {error}")
        else:
            outcome = shrunk.outcome
            click.echo(f"shrunk in {shrunk.runs} runs to {summary(outcome.plan)}")
    test = pytest_of(outcome, law)
    if out is None:
        click.echo("\nA test that keeps it:\n")
        click.echo(test)
        return
    out.mkdir(parents=True, exist_ok=True)
    name = f"seed_{outcome.plan.seed}"
    (out / f"{name}.json").write_text(outcome.plan.to_json(), "utf-8")
    (out / f"test_{name}.py").write_text(test, "utf-8")
    click.echo(f"the plan is in {out / name}.json, a test in {out / f'test_{name}.py'}")


# -- many ------------------------------------------------------------------------------------------


def _many(seeds: range, mode: Mode, jobs: int, out: Path | None, *, shrinks: bool) -> int:
    from mockbroker.simulation.many import results
    from mockbroker.simulation.reporting import table

    counts: Counter[str] = Counter()
    broken: list[SeedResult] = []
    started_s = time.perf_counter()
    for result in _with_progress(results(seeds, jobs, mode), len(seeds)):
        counts.update(result.counts)
        if result.violations:
            broken.append(result)
            click.echo(f"seed {result.seed}: {result.violations[0]}")
    took_s = time.perf_counter() - started_s
    click.echo(
        f"{len(seeds):,} schedules in {took_s:.1f} s: {len(seeds) / took_s:.1f} a second, with"
    )
    for line in table(counts):
        click.echo(line)
    if not broken:
        click.echo("every law holds")
        return 0
    _print_failures(sorted(broken), mode, out, shrinks=shrinks)
    return 1


def _with_progress(results: Iterator[SeedResult], count: int) -> Iterator[SeedResult]:
    """The results, counted on stderr if that is a terminal."""
    is_terminal = sys.stderr.isatty()
    started_s = printed_s = time.perf_counter()
    broken = 0
    for number, result in enumerate(results, start=1):
        broken += bool(result.violations)
        yield result
        now_s = time.perf_counter()
        if is_terminal and (now_s - printed_s > _PROGRESS_S or number == count):
            printed_s = now_s
            rate = number / (now_s - started_s)
            line = f"\r{number:,}/{count:,} schedules, {rate:.1f} a second, {broken} broken "
            click.echo(line, err=True, nl=number == count)


def _print_failures(
    broken: list[SeedResult], mode: Mode, out: Path | None, *, shrinks: bool
) -> None:
    from mockbroker.simulation.running import run
    from mockbroker.simulation.swarm import generate

    laws = Counter(law for result in broken for law in {each.law for each in result.violations})
    click.echo(f"{len(broken)} schedules broke a law:")
    for law, count in laws.most_common():
        seeds = [r.seed for r in broken if any(each.law == law for each in r.violations)]
        shown = ", ".join(map(str, seeds[:_FAILURES_SHOWN]))
        more = ", …" if len(seeds) > _FAILURES_SHOWN else ""
        click.echo(f"  {law}: {count} ({shown}{more})")
    failed = next((result for result in broken if result.failure), None)
    if failed is not None:
        click.echo(f"seed {failed.seed} failed:\n{failed.failure}")
    first = next((result for result in broken if not result.failure), None)
    if first is not None:
        click.echo(f"the first, seed {first.seed}:")
        _print_failure(run(generate(first.seed), mode), out, shrinks=shrinks)


def _audit(seeds: range) -> int:
    from mockbroker.cli.simulation_audit import audited
    from mockbroker.pipeline.store import StoreError
    from mockbroker.simulation.swarm import generate

    judged = bugs = 0
    for seed in seeds:
        try:
            found = audited(generate(seed))
        except StoreError as error:
            raise click.UsageError(f"--audit-every: {error}") from None
        judged += found.judged
        bugs += bool(found.violations)
        for violation in found.violations:
            click.echo(f"seed {seed}: {violation}")
    click.echo(f"{judged} of {len(seeds)} schedules were audited, and {bugs} have bugs")
    return int(bugs > 0)
