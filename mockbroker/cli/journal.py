"""`mockbroker journal` and `mockbroker verify`: print a journal, and check expectations."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from mockbroker.cli.admin_client import AdminClient, admin_command, named_values, read_data
from mockbroker.cli.common import json_option
from mockbroker.cli.output import print_json

_PAGE_EVENTS = 1_000


class _Journal(click.Group):
    """A group with the default command `show`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, *ctx.help_option_names):
            if args and args[0][:1].isalpha() and "=" not in args[0] and not ctx.resilient_parsing:
                from mockbroker.core.validation import nearest

                commands = f"; the commands are {', '.join(self.commands)}"
                hint = nearest(args[0], self.commands, listed=False) or commands
                raise click.UsageError(
                    f"{args[0]!r} is neither a command nor NAME=VALUE{hint}", ctx
                )
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Journal)
def journal() -> None:
    """Print a running cluster's journal, or write it as tables.

    `show` is the default command.

    \b
    mockbroker journal -f kind=append topic=orders
    mockbroker journal api=Fetch error=any --json
    mockbroker journal export audit
    """


@journal.command("show")
@click.argument("conditions", nargs=-1, metavar="[NAME=VALUE]…")
@click.option("-f", "--follow", is_flag=True, help="Follow new events.")
@click.option("--after", type=click.IntRange(min=0), default=0, help="Start after this `seq`.")
@json_option
@admin_command
def show_events(
    api: AdminClient, conditions: tuple[str, ...], follow: bool, after: int, as_json: bool
) -> None:
    """Print a running cluster's journal, one line an event.

    \b
    mockbroker journal -f kind=append topic=orders
    mockbroker journal api=Fetch error=any --json
    """
    query: dict[str, Any] = {**named_values(conditions), "after": after}
    if not as_json:
        query["messages"] = "false"
    show = _print_json if as_json else _print_line
    if follow:
        for line in api.lines("/v1/journal/stream", query):
            if line.startswith("data: "):
                show(json.loads(line.removeprefix("data: ")))
        return
    while True:
        page = api.get("/v1/journal", {**query, "limit": _PAGE_EVENTS})
        for event in page["events"]:
            show(event)
        if page["next"] <= query["after"] or page["next"] >= page["last_seq"]:
            return
        query["after"] = page["next"]


@journal.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--from",
    "source",
    type=click.Choice(["cluster", "spool"]),
    default="cluster",
    show_default=True,
    help="Source: a running cluster, or the spool of `serve --journal-dir` in DIRECTORY.",
)
@click.option("--run", help="Name of the run or spool.")
@json_option
@admin_command
def export(api: AdminClient, directory: Path, source: str, run: str | None, as_json: bool) -> None:
    """Write the journal as Parquet tables into DIRECTORY.

    The exit code is 1 when the run is not complete, because its broker was killed.

    \b
    mockbroker journal export audit
    mockbroker journal export audit --from spool
    """
    from mockbroker.pipeline.convert.run import convert_export, convert_spool
    from mockbroker.pipeline.store import StoreError

    try:
        if source == "spool":
            done = convert_spool(directory, run)
        else:
            done = convert_export(api.read("/v1/journal/entries"), directory, run)
    except StoreError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        print_json(
            {
                "directory": str(directory),
                "run": done.run,
                "rows": done.rows,
                "complete": done.complete,
            }
        )
    else:
        rows = sum(done.rows.values())
        click.echo(f"{directory}: run {done.run}, {rows} rows in {len(done.rows)} tables")
    if not done.complete:
        click.echo(f"the run is not complete: {done.reason}", err=True)
        sys.exit(1)


@journal.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@admin_command
def save(api: AdminClient, file: Path) -> None:
    """Write the journal's entries into FILE, for `mockbroker console FILE`.

    \b
    mockbroker journal save journal.mbj
    """
    data = api.read("/v1/journal/entries")
    try:
        file.write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from None
    click.echo(f"{file}: {len(data)} bytes")


def _print_json(event: dict[str, Any]) -> None:
    click.echo(json.dumps(event, ensure_ascii=False))


def _print_line(event: dict[str, Any]) -> None:
    import msgspec

    from mockbroker.core.journal.events import JournalEvent, one_line

    at = datetime.fromtimestamp(event["virtual_ms"] / 1000, UTC)
    line = one_line(msgspec.convert(event, JournalEvent))
    click.echo(f"{at.strftime('%H:%M:%S.%f')[:-3]} {line}")


@click.command()
@click.argument("expectation")
@json_option
@admin_command
def verify(api: AdminClient, expectation: str, as_json: bool) -> None:
    """Exit with 0 if the journal meets EXPECTATION; otherwise with 1 and the reasons.

    EXPECTATION is a file (- is standard input) or data in braces.

    \b
    mockbroker verify '{match: {kind: append, topic: orders}, exactly: 3}'
    """
    verdict = api.post("/v1/verify", read_data(expectation))
    if as_json:
        _print_json(verdict)
    else:
        import msgspec

        from mockbroker.core.journal.verify import VerificationResult, explain

        click.echo(explain(msgspec.convert(verdict, VerificationResult)))
    if not verdict["holds"]:
        sys.exit(1)
