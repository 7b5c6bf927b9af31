"""`mockbroker console`: the console of a saved journal, or the address of a running cluster's."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click
import trio

from mockbroker.cli.admin_client import AdminClient, admin_command
from mockbroker.cli.lazy import discard_output


@click.command()
@click.argument("source", metavar="[FILE|DIRECTORY]", required=False)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port for a saved journal; 0 takes a free one.",
)
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@admin_command
def console(api: AdminClient, source: str | None, port: int, opens: bool) -> None:
    """Print the address of a console.

    FILE is a saved journal, as `mockbroker journal save` writes it, or the journal.mbj of a failed
    test; DIRECTORY is that of `serve --journal-dir`. The command serves it until it is interrupted.
    Without either, the address is that of a running cluster.

    \b
    mockbroker journal save journal.mbj
    mockbroker console journal.mbj --open
    """
    if source is None:
        api.get("/v1/about")
        _announce(f"{api.url}/", opens=opens)
    else:
        _serve(Path(source), port, opens=opens)


def _serve(path: Path, port: int, *, opens: bool) -> None:
    from mockbroker.admin import AdminError, serve_saved
    from mockbroker.pipeline.saved import open_journal
    from mockbroker.pipeline.store import StoreError

    try:
        journal = open_journal(path)
        server = serve_saved(journal, port=port)
    except (StoreError, AdminError) as error:
        raise click.ClickException(str(error)) from None
    if journal.torn:
        click.echo(f"the journal is not whole: {journal.torn}", err=True)
    try:
        trio.run(_announce_until_signalled, f"{server.url}/", opens)
    finally:
        server.stop()


async def _announce_until_signalled(url: str, opens: bool) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        _announce(url, opens=opens)
        async for _ in signals:
            return


def _announce(url: str, *, opens: bool) -> None:
    try:
        click.echo(f"console={url}")
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    if opens:
        import webbrowser

        webbrowser.open(url)
