"""`mockbroker serve`: start a cluster, print a line when it is ready, stop at a signal."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import trio

from mockbroker.cli.admin_options import (
    DEFAULT_ADMIN_PORT,
    AdminOptions,
    admin_options,
    read_admin_options,
)
from mockbroker.cli.cluster_options import build_config, cluster_options
from mockbroker.cli.lazy import discard_output
from mockbroker.cli.parent import cancel_with_parent
from mockbroker.cli.serving import Serving, serving
from mockbroker.core.errors import ConfigError, first_error
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.config import ServerConfig, ServerError, StorageError
from mockbroker.server.network.descriptors import raise_descriptor_limit
from mockbroker.server.network.socket_server import Trace

if TYPE_CHECKING:
    from mockbroker.cli.daemon import Daemon

FAILED = 1
BAD_USAGE = 2
# New objects between two garbage collections. A broker makes hardly any garbage: with Python's 700,
# the collections take as long as the creation of ten thousand partitions.
COLLECT_EVERY = 10_000


def _write_ready_file(path: Path, cluster: Serving) -> None:
    """Write the ready line, or JSON if the file's name says so, atomically. Raises ServerError."""
    text = cluster.ready_json() if path.suffix == ".json" else cluster.ready_line()
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text + "\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ServerError(f"cannot write the ready file {path}: {error.strerror}") from None


def _print(line: str) -> None:
    """Print it. A closed output is ignored, and the cluster continues to serve."""
    try:
        print(line, flush=True)  # noqa: T201 - this line is what the command is for
    except BrokenPipeError:
        discard_output()


def _tracer() -> Trace:
    from mockbroker.server.network.trace import print_trace

    return print_trace


async def _until_signalled(task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            return


async def _serve(
    config: ServerConfig,
    api: AdminOptions | None,
    ready_file: Path | None,
    trace: Trace | None,
    announce: Callable[[str], None],
    journal_dir: Path | None = None,
    *,
    with_parent: bool = False,
) -> None:
    async with trio.open_nursery() as nursery:

        async def stop_on_signal(task_status: trio.TaskStatus[None]) -> None:
            await _until_signalled(task_status)
            nursery.cancel_scope.cancel()

        await nursery.start(stop_on_signal)
        if with_parent:
            nursery.start_soon(cancel_with_parent, nursery.cancel_scope)
        async with serving(config, api, trace=trace, journal_dir=journal_dir) as cluster:
            try:
                if ready_file is not None:
                    _write_ready_file(ready_file, cluster)
                announce(cluster.ready_line())
                if cluster.admin is not None and sys.stdout.isatty():
                    announce(f"console: {cluster.admin.url}/")  # for people; scripts have `admin`
                await cluster.start_admin()
                await trio.sleep_forever()
            finally:
                if ready_file is not None:
                    with contextlib.suppress(OSError):
                        ready_file.unlink(missing_ok=True)  # noqa: ASYNC240 - one unlink


@click.command()
@cluster_options
@admin_options(default_port=DEFAULT_ADMIN_PORT)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the ready line to this file, or a JSON object if its name ends in .json.",
)
@click.option(
    "--with-parent",
    is_flag=True,
    help="Stop when the process that started this one has ended, however it ended.",
)
@click.option(
    "--daemon",
    "in_background",
    is_flag=True,
    help="Run in the background. Return when clients can connect. `mockbroker stop` ends it.",
)
@click.option(
    "--pid-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --daemon: file for the process id.  [default: mockbroker.pid]",
)
@click.option(
    "--log-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --daemon: append the output to this file.  [default: none]",
)
@click.option("--trace", is_flag=True, help="Print each request with its answer on one line.")
def serve(
    admin_port: int,
    no_admin: bool,
    allow_remote: bool,
    admin_token_file: Path | None,
    ready_file: Path | None,
    with_parent: bool,
    in_background: bool,
    pid_file: Path | None,
    log_file: Path | None,
    journal_dir: Path | None,
    trace: bool,
    **options: object,
) -> None:
    """Run a Kafka cluster until interrupted.

    When clients can connect, one line is printed: ready bootstrap=HOST:PORT,…
    admin=http://HOST:PORT
    """
    daemon: Daemon | None = None
    try:
        config = build_config(**options)  # type: ignore[arg-type]
        if in_background and with_parent:
            raise ServerError("--daemon and --with-parent exclude each other")
        if in_background or pid_file or log_file:
            daemon = _daemon(in_background, pid_file, log_file)
            daemon.detach()
        raise_descriptor_limit()
        gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])
        run = partial(_serve, with_parent=with_parent)
        trio.run(
            run,
            config,
            read_admin_options(
                config.listeners[0].host,
                admin_port=admin_port,
                no_admin=no_admin,
                allow_remote=allow_remote,
                admin_token_file=admin_token_file,
            ),
            ready_file,
            _tracer() if trace else None,
            _print if daemon is None else daemon.announce,
            journal_dir,
            clock=AdjustableClock(),
        )
    except* (ServerError, ConfigError) as group:
        error = first_error(group)
        click.echo(f"mockbroker: {error}", err=True)
        sys.exit(FAILED if isinstance(error, StorageError) else BAD_USAGE)
    except* KeyboardInterrupt:
        sys.exit(130)
    finally:
        if daemon is not None:
            daemon.end()


def _daemon(in_background: bool, pid_file: Path | None, log_file: Path | None) -> Daemon:
    """The daemon of the options. Raises ServerError if they contradict each other."""
    if not in_background:
        raise ServerError("--pid-file and --log-file need --daemon")
    if not hasattr(os, "fork"):
        raise ServerError("--daemon needs a system that can fork")
    from mockbroker.cli.daemon import PID_FILE, Daemon

    return Daemon(pid_file or PID_FILE, log_file)
