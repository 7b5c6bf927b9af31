"""`mockbroker exec [options] -- COMMAND`: a program with a cluster around it."""

from __future__ import annotations

import os
from pathlib import Path

import click
import trio

from mockbroker.cli.admin_options import AdminOptions, admin_options, read_admin_options
from mockbroker.cli.cluster_options import build_config, cluster_options
from mockbroker.cli.parent import cancel_with_parent
from mockbroker.cli.programs import BY_SIGNAL, run_program
from mockbroker.cli.serving import serving
from mockbroker.core.errors import ConfigError, first_error
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.config import ServerConfig, ServerError, StorageError

NOT_FOUND = 127
NOT_EXECUTABLE = 126
ORPHANED = BY_SIGNAL + 1  # as after SIGHUP


@click.command("exec", context_settings={"allow_interspersed_args": False})
@cluster_options
@admin_options(default_port=0)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND…", required=True)
def execute(
    admin_port: int,
    no_admin: bool,
    allow_remote: bool,
    admin_token_file: Path | None,
    journal_dir: Path | None,
    command: tuple[str, ...],
    **options: object,
) -> int:
    """Run COMMAND with a cluster around it; the exit code is COMMAND's.

    COMMAND finds the cluster in MOCKBROKER_BOOTSTRAP and MOCKBROKER_ADMIN, and the admin API's
    token, if it needs one, in MOCKBROKER_ADMIN_TOKEN. The cluster has free ports. It ends with
    COMMAND, and both end with the process that started them.
    """
    try:
        config = build_config(**options, default_port=0)  # type: ignore[arg-type]
        admin = read_admin_options(
            config.listeners[0].host,
            admin_port=admin_port,
            no_admin=no_admin,
            allow_remote=allow_remote,
            admin_token_file=admin_token_file,
        )
        return trio.run(_run, config, admin, journal_dir, command, clock=AdjustableClock())
    except* (ServerError, ConfigError) as errors:
        error = first_error(errors)
        kind = click.ClickException if isinstance(error, StorageError) else click.UsageError
        raise kind(str(error)) from None


async def _run(
    config: ServerConfig,
    admin: AdminOptions | None,
    journal_dir: Path | None,
    command: tuple[str, ...],
) -> int:
    status = ORPHANED
    async with (
        serving(config, admin, journal_dir=journal_dir) as cluster,
        trio.open_nursery() as nursery,
    ):
        await cluster.start_admin()
        nursery.start_soon(cancel_with_parent, nursery.cancel_scope)
        status = await _status(command, os.environ | cluster.environment())
        nursery.cancel_scope.cancel()
    return status


async def _status(command: tuple[str, ...], environment: dict[str, str]) -> int:
    """The command's exit code, or the shell's for one that cannot be started."""
    try:
        return await run_program(command, environment)
    except OSError as error:
        click.echo(f"mockbroker exec: {command[0]}: {error.strerror}", err=True)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
