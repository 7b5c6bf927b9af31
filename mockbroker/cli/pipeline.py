"""`mockbroker pipeline …`: what became of every record, and what was measured, from a journal."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mockbroker.cli.output import PIPED_WIDTH, print_table
from mockbroker.cli.progress import Steps, steps

if TYPE_CHECKING:
    from rich.console import Console

    from mockbroker.pipeline.duck.session import DuckSession
    from mockbroker.pipeline.findings import Finding
    from mockbroker.pipeline.report.model import Report, Row
    from mockbroker.pipeline.store import RunStore

# Exit codes; see mockbroker.pipeline.report.model.
NO_VERDICT = 2
DUCKDB, SPARK = "duckdb", "spark"
ENGINES = {DUCKDB: "DuckDB", SPARK: "Spark"}
STDOUT = Path("-")
# Packages whose errors mean that an engine failed, as when it runs out of memory.
_FAILING = {"duckdb": "DuckDB", "_duckdb": "DuckDB", "pyspark": "Spark", "py4j": "Spark"}
# Jobs of Spark that are not in the module of their own name.
JOBS_ELSEWHERE = {"ownership": "rebalances"}
# Of the columns in ms, those that are no time of the cluster's clock.
DURATIONS = {"took_ms", "stopped_ms", "recovery_ms"}


class PipelineError(click.ClickException):
    """The directory, the engine or the machine do not allow a verdict."""

    exit_code = NO_VERDICT


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def pipeline() -> None:
    """Audit and measure a cluster from its journal's tables.

    DIR is the directory of `mockbroker journal export` or `serve --journal-dir`.
    """


def _on_tables(function: Callable[..., None]) -> Callable[..., None]:
    """The argument and options that all commands share, and one line for what stops them."""

    @click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
    @click.option(
        "--engine",
        type=click.Choice([DUCKDB, SPARK]),
        default=DUCKDB,
        show_default=True,
        help="Engine: DuckDB in this process, or Spark.",
    )
    @click.option("--run", "runs", multiple=True, help="Use only this run. May be repeated.")
    @click.option(
        "--memory",
        metavar="SIZE",
        help="Memory limit of the engine, such as 4GB.  [default: 2GB; Spark: its own]",
    )
    @click.option(
        "--incomplete",
        is_flag=True,
        help="Include incomplete runs. The report marks them.",
    )
    @click.option(
        "--json",
        "json_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write JSON to a file; - is standard output.",
    )
    @functools.wraps(function)
    def command(directory: Path, runs: tuple[str, ...], **options: Any) -> None:
        from mockbroker.pipeline.store import StoreError

        try:
            function(directory, list(runs) or None, **options)
        except StoreError as error:
            raise PipelineError(str(error)) from None
        except Exception as error:
            engine = _FAILING.get(type(error).__module__.partition(".")[0])
            if engine is None:
                raise
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise PipelineError(f"{engine} failed, so there is no report: {said[0]}") from error

    return command


@pipeline.command()
@_on_tables
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report as one page of HTML.",
)
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write JUnit XML with a test case for each rule.",
)
@click.option(
    "--bugs-only",
    is_flag=True,
    help="Exit code 1 for bugs alone, not for reports.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="ANOMALY",
    help="Findings of this anomaly do not count. May be repeated.",
)
def audit(
    directory: Path,
    runs: Sequence[str] | None,
    engine: str,
    memory: str | None,
    incomplete: bool,
    json_file: Path | None,
    html_file: Path | None,
    junit_file: Path | None,
    bugs_only: bool,
    allow: Sequence[str],
) -> None:
    """Report lost, duplicated, dirty-read and skipped records.

    Exit code 0: clean; 1: findings; 2: no verdict, because something could not be checked (gaps, a
    run that is not complete, equal records without an id), or the tables cannot be used.
    """
    from mockbroker.pipeline.report.formats import as_json, as_junit
    from mockbroker.pipeline.report.model import check_anomalies
    from mockbroker.pipeline.report.terminal import show

    whole = html_file is not None or json_file is not None
    try:
        allowed = check_anomalies(allow)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--allow") from None
    report = _judged(directory, runs, engine, memory, incomplete=incomplete, whole=whole)
    if html_file is not None:
        from mockbroker.pipeline.report.html import page

        _write(html_file, page(report))
    if junit_file is not None:
        _write(junit_file, as_junit(report, bugs_only=bugs_only, allow=allowed))
    if json_file is not None:
        _write(json_file, as_json(report, bugs_only=bugs_only, allow=allowed))
    if json_file != STDOUT:
        show(report, _console())
    sys.exit(report.exit_code(bugs_only=bugs_only, allow=allowed))


def _judged(
    directory: Path,
    runs: Sequence[str] | None,
    engine: str,
    memory: str | None,
    *,
    incomplete: bool,
    whole: bool,
) -> Report:
    from mockbroker.pipeline.duck import judge
    from mockbroker.pipeline.report.build import build_report

    with (
        steps("audit") as progress,
        _tables(directory, runs, memory if engine == DUCKDB else None, incomplete) as (
            store,
            session,
        ),
    ):
        if engine == SPARK:
            findings = _judged_by_spark(store, memory, progress, incomplete)
        else:
            findings = judge(session, progress=progress.step)
        progress.step("report", 1, 1)
        return build_report(store, session, findings, engine=ENGINES[engine], with_cases=whole)


def _judged_by_spark(
    store: RunStore, memory: str | None, progress: Steps, incomplete: bool
) -> list[Finding]:
    from mockbroker.pipeline.findings import ANOMALIES, FINDING_COLUMNS, Finding

    with _spark(memory) as spark, progress.watching(spark):
        from mockbroker.pipeline.spark.audit import audit as audit_by_spark
        from mockbroker.pipeline.spark.inputs import read

        done: list[str] = []

        def on_judged(anomaly: str, _: int) -> None:
            done.append(anomaly)
            progress.step(f"judged {anomaly}", len(done), len(ANOMALIES))

        names = [run.run for run in store.runs]
        inputs = read(spark, store.path, names, incomplete=incomplete)
        found = audit_by_spark(inputs, progress=on_judged).select(*FINDING_COLUMNS)
        return sorted((Finding(*row) for row in found.collect()), key=_in_order)


def _in_order(finding: Finding) -> tuple[str, ...]:
    return tuple("" if part is None else str(part) for part in finding)


def _measuring(name: str, help_text: str) -> None:
    @_on_tables
    def command(
        directory: Path,
        runs: Sequence[str] | None,
        engine: str,
        memory: str | None,
        incomplete: bool,
        json_file: Path | None,
    ) -> None:
        with steps(name) as progress:
            rows = _measured(name, directory, runs, engine, memory, incomplete, progress)
        _warn_of_what_is_missing(directory, runs)
        if json_file is not None:
            import json

            _write(json_file, json.dumps(list(rows), indent=1, default=str) + "\n")
        if json_file != STDOUT:
            _print_rows(_at_the_end(rows) if name == "lag" else rows)

    pipeline.command(name, help=help_text)(command)


def _warn_of_what_is_missing(directory: Path, runs: Sequence[str] | None) -> None:
    from mockbroker.pipeline.report.words import printable
    from mockbroker.pipeline.store import open_store

    for run in open_store(directory, runs).runs:
        if not run.complete:
            click.echo(
                f"! run {run.run} is not complete {printable(run.reason)}".rstrip(), err=True
            )
        if run.rows.get("gaps"):
            click.echo(f"! the journal of run {run.run} has gaps: there may be more", err=True)


def _measured(
    name: str,
    directory: Path,
    runs: Sequence[str] | None,
    engine: str,
    memory: str | None,
    incomplete: bool,
    progress: Steps,
) -> Sequence[Row]:
    if engine == SPARK:
        from mockbroker.pipeline.spark.inputs import read

        with _spark(memory) as spark, progress.watching(spark):
            job = _spark_job(name)
            frame = job(read(spark, directory, runs, incomplete=incomplete))
            return [row.asDict() for row in frame.collect()]
    from mockbroker.pipeline.duck.measures import measure

    with _tables(directory, runs, memory, incomplete) as (_, session):
        return measure(session, name)


def _spark_job(name: str) -> Callable[[Any], Any]:
    """The job of that name: a function of a module of mockbroker.pipeline.spark."""
    from importlib import import_module

    module = import_module(f"mockbroker.pipeline.spark.{JOBS_ELSEWHERE.get(name, name)}")
    job: Callable[[Any], Any] = getattr(module, name)
    return job


for _name, _help in (
    (
        "lag",
        "How far groups were behind at the end, by high watermark and by last stable offset; "
        "with --json, each time that became known.",
    ),
    ("rebalances", "Rebalances of groups: reason, duration and moved partitions."),
    ("ownership", "Owners of partitions over time."),
    ("latency", "Latency of requests by API and client."),
    ("faults", "Effect of each rule, and recovery time of clients."),
    ("skew", "Distribution of records and keys over partitions."),
):
    _measuring(_name, _help)


@contextmanager
def _tables(
    directory: Path, runs: Sequence[str] | None, memory: str | None, incomplete: bool
) -> Iterator[tuple[RunStore, DuckSession]]:
    """The store, checked, and DuckDB over it."""
    from mockbroker.pipeline.duck import open_session
    from mockbroker.pipeline.store import open_store

    store = open_store(directory, runs)
    store.check(incomplete=incomplete)
    with open_session(store, memory) as session:
        yield store, session


@contextmanager
def _spark(memory: str | None) -> Iterator[Any]:
    """A Spark session of this process. What Spark lacks is said in one line."""
    from mockbroker.pipeline.spark.errors import JobError
    from mockbroker.pipeline.spark.session import session

    try:
        spark = session(
            "mockbroker pipeline", memory=memory.lower().removesuffix("b") if memory else None
        )
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    except JobError as error:
        raise PipelineError(str(error)) from None


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=PIPED_WIDTH, highlight=False)


def _at_the_end(rows: Sequence[Row]) -> list[Row]:
    """The last row of each group and partition: what people look for first."""
    last = {(row["run"], row["group"], row["topic"], row["partition"]): row for row in rows}
    return list(last.values())


def _print_rows(rows: Sequence[Row]) -> None:
    if not rows:
        click.echo("nothing", err=True)
        return
    several_runs = len({row["run"] for row in rows}) > 1
    left_out = (
        {"seq", "start_seq", "topic_id"}
        if several_runs
        else {"run", "seq", "start_seq", "topic_id"}
    )
    columns = [name for name in rows[0] if name not in left_out]
    print_table(
        [name.removesuffix("_ms").upper().replace("_", " ") for name in columns],
        [[_cell(name, row[name]) for name in columns] for row in rows],
    )


def _cell(column: str, value: object) -> str | int | None:
    from mockbroker.pipeline.report.words import at, printable

    if value is None:
        return None
    if isinstance(value, int):
        is_time = column.endswith("_ms") and column not in DURATIONS
        return at(value) if is_time else value
    return printable(value)


def _write(file: Path, text: str) -> None:
    if file == STDOUT:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"cannot write {file}: {error.strerror}") from None
