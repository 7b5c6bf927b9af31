"""`mockbroker serve`: start a cluster, print a line when it is ready, stop at a signal."""

from __future__ import annotations

import contextlib
import dataclasses
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

from mockbroker.cli.admin_options import AdminOptions, admin_options, read_admin_options
from mockbroker.core.errors import ConfigError, first_error
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker.server.config import (
    PORT_MAX,
    ListenerSpec,
    ServerConfig,
    ServerError,
    TopicSpec,
)
from mockbroker.server.network.socket_server import Trace

if TYPE_CHECKING:
    from mockbroker.cli.daemon import Daemon
    from mockbroker.pipeline.spool.exporter import JournalExporter

DEFAULT_PORT = 9092
BAD_USAGE = 2
EXAMPLES = Path(__file__).parent / "examples"
# New objects between two garbage collections. A broker makes hardly any garbage: with Python's 700,
# the collections take as long as the creation of ten thousand partitions.
COLLECT_EVERY = 10_000


def _topic(text: str) -> TopicSpec:
    """NAME:PARTITIONS[:RF]. Raises ServerError for other text."""
    parts = text.split(":")
    if len(parts) not in (1, 2, 3) or not parts[0]:
        raise ServerError(f"--topic {text}: expected NAME:PARTITIONS[:REPLICATION_FACTOR]")
    try:
        counts = [int(part) for part in parts[1:]]
    except ValueError:
        raise ServerError(
            f"--topic {text}: expected numbers after the name, NAME:PARTITIONS[:REPLICATION_FACTOR]"
        ) from None
    partitions, replication_factor = (*counts, *(1, 1)[len(counts) :])
    return TopicSpec(parts[0], partitions, replication_factor)


def _config(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ServerError(f"--config {text}: expected NAME=VALUE")
    return name.strip(), value.strip()


def _listener(text: str) -> ListenerSpec:
    """NAME:PROTOCOL:PORT, or PROTOCOL:PORT for a listener with the name of its protocol."""
    parts = text.split(":")
    if len(parts) == 2:
        parts = [parts[0], *parts]
    if len(parts) != 3 or not parts[0] or not parts[2].isdecimal() or int(parts[2]) > PORT_MAX:
        raise ServerError(f"--listener {text}: expected NAME:PROTOCOL:PORT")
    return ListenerSpec(parts[0], port=int(parts[2]), security_protocol=parts[1].upper())


def _user(text: str) -> tuple[str, str]:
    """NAME:PASSWORD. The error message has no text of the argument: it may hold a password."""
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise ServerError("--user: expected NAME:PASSWORD")
    return name, password


def _node_ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ServerError(f"--node-ids {text}: expected numbers separated by commas") from None


def _broker_ids(
    brokers: int | None, node_ids: str | None, base: ServerConfig, *, stored: bool
) -> list[int] | None:
    """The node ids, None for 1, 2, 3, …; --brokers outranks the node ids of the file.

    A `stored` cluster has its brokers, so --brokers is checked against these.
    """
    if node_ids is None:
        if stored and brokers is not None:
            return list(range(1, brokers + 1))
        return None if brokers is not None or base.node_ids is None else list(base.node_ids)
    ids = _node_ids(node_ids)
    if brokers not in (None, len(ids)):
        raise ServerError(f"--brokers {brokers}, but --node-ids names {len(ids)}")
    return ids


def build_config(
    *,
    brokers: int | None,
    node_ids: str | None,
    rack: tuple[str, ...],
    host: str | None,
    port: int | None,
    advertised_host: str | None,
    listeners: tuple[str, ...] = (),
    users: tuple[str, ...] = (),
    security_dir: Path | None = None,
    allow_unsigned_tokens: bool = False,
    data_dir: Path | None = None,
    sync: bool = False,
    load: Path | None = None,
    recover: bool = False,
    journal_hops: bool = False,
    topics: tuple[str, ...],
    configs: tuple[str, ...],
    kafka_version: str | None,
    strict: bool = False,
    seed: int | None,
    config_file: Path | None,
    example: str | None = None,
) -> ServerConfig:
    """The config of flags and config file; a flag outranks the file.

    Raises ServerError naming the flag or the field.
    """
    if example is not None:
        if config_file is not None:
            raise ServerError("--example and --config-file exclude each other")
        config_file = EXAMPLES / f"{example}.toml"
    if config_file is not None:
        from mockbroker.cli import config_file as files

        base = files.server_config(files.load(config_file))
    else:
        base = ServerConfig(listeners=())
    data_dir = data_dir or base.data_dir
    if recover and data_dir is None and load is None:
        raise ServerError("--recover needs --data-dir or --load")
    if sync and data_dir is None:
        raise ServerError("--sync needs --data-dir")
    if listeners and port is not None:
        raise ServerError("--port and --listener exclude each other: a listener names its port")
    specs = [_listener(text) for text in listeners]
    specs = specs or list(base.listeners) or [ListenerSpec(port=DEFAULT_PORT)]
    for index, spec in enumerate(specs if listeners else specs[:1]):
        specs[index] = dataclasses.replace(
            spec,
            host=spec.host if host is None else host,
            port=spec.port if port is None else port,
            advertised_host=spec.advertised_host if advertised_host is None else advertised_host,
        )
    return dataclasses.replace(
        base,
        brokers=base.brokers if brokers is None else brokers,
        node_ids=_broker_ids(brokers, node_ids, base, stored=bool(data_dir or load)),
        racks=list(rack) or base.racks,
        listeners=tuple(specs),
        topics=[*base.topics, *(_topic(text) for text in topics)],
        configs={**base.configs, **dict(_config(text) for text in configs)},
        kafka_version=base.kafka_version if kafka_version is None else kafka_version,
        strict=strict or base.strict,
        seed=base.seed if seed is None else seed,
        users={**base.users, **dict(_user(text) for text in users)},
        security_directory=security_dir or base.security_directory,
        allow_unsigned_tokens=allow_unsigned_tokens or base.allow_unsigned_tokens,
        data_dir=data_dir,
        sync=sync or base.sync,
        load=load,
        recover=recover,
        journal_hops=journal_hops,
    )


def _write_ready_file(path: Path, line: str) -> None:
    """Write the ready line atomically. Raises ServerError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(line + "\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ServerError(f"cannot write the ready file {path}: {error.strerror}") from None


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this line is what the command is for


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
) -> None:
    exporter: JournalExporter | None = None
    async with trio.open_nursery() as nursery:

        async def stop_on_signal(task_status: trio.TaskStatus[None]) -> None:
            await _until_signalled(task_status)
            nursery.cancel_scope.cancel()

        await nursery.start(stop_on_signal)
        try:
            async with open_server(config, trace=trace) as server:
                if journal_dir is not None:
                    from mockbroker.cli.journal_export import export_journal

                    exporter = export_journal(server.cluster, journal_dir)
                await _announce_and_serve(server, config, api, ready_file, announce)
        finally:
            if exporter is not None:
                exporter.stop()
    if exporter is not None:
        from mockbroker.cli.journal_export import finish_export

        await trio.to_thread.run_sync(finish_export, exporter)


def _other_listeners(server: ClusterServer, config: ServerConfig) -> str:
    """For the ready line: the addresses of the other listeners, and the directory of files."""
    words = [f" {each.name}={server.bootstrap(each.name)}" for each in config.listeners[1:]]
    if any(listener.security_protocol != "PLAINTEXT" for listener in config.listeners):
        words.append(f" files={server.security.write_files()}")
    return "".join(words)


async def _announce_and_serve(
    server: ClusterServer,
    config: ServerConfig,
    api: AdminOptions | None,
    ready_file: Path | None,
    announce: Callable[[str], None],
) -> None:
    line = f"ready bootstrap={server.bootstrap_servers}"
    admin = None
    try:
        if api is not None:
            # Hypercorn and Starlette are imported in the admin thread, while the brokers serve.
            from mockbroker.admin import AdminError, ServerTarget, start_admin

            try:
                admin = await trio.to_thread.run_sync(
                    partial(
                        start_admin,
                        ServerTarget(server),
                        api.host,
                        api.port,
                        secret=api.secret,
                    )
                )
            except AdminError as error:
                raise ServerError(str(error)) from None
            line += f" admin=http://{admin.host}:{admin.port}"
            if api.secret_file is not None:
                line += f" admin-token-file={api.secret_file}"
        line += _other_listeners(server, config)
        if ready_file is not None:
            _write_ready_file(ready_file, line)
        announce(line)
        await trio.sleep_forever()
    finally:
        if ready_file is not None:
            with contextlib.suppress(OSError):
                ready_file.unlink(missing_ok=True)  # noqa: ASYNC240 - one unlink, at the end
        if admin is not None:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(admin.stop)
        if api is not None:
            api.close()


@click.command()
@click.option("--brokers", type=click.IntRange(1, 1000), help="Number of brokers.  [default: 3]")
@click.option("--node-ids", metavar="ID,ID,…", help="Node ids instead of 1, 2, 3, …")
@click.option("--rack", multiple=True, help="Rack of the next broker. May be repeated.")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Broker i listens on PORT+i; 0 takes free ports.  [default: {DEFAULT_PORT}]",
)
@click.option("--advertised-host", metavar="HOST", help="Host that brokers advertise to clients.")
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    metavar="NAME:PROTOCOL:PORT",
    help="Add a listener. PROTOCOL is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. May be repeated.",
)
@click.option(
    "--user",
    "users",
    multiple=True,
    metavar="NAME:PASSWORD",
    help="Add a SASL user. May be repeated.",
)
@click.option(
    "--security-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for the certificates and keys of clients.  [default: a temporary one]",
)
@click.option("--allow-unsigned-tokens", is_flag=True, help="Accept unsigned OAUTHBEARER tokens.")
@admin_options
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME:PARTITIONS[:RF]",
    help="Create a topic. May be repeated.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a broker config. May be repeated.",
)
@click.option(
    "--kafka-version", metavar="VERSION", help="Behave as this Kafka release (2.8 … 4.3)."
)
@click.option("--strict", is_flag=True, help="Behave as Kafka where mockbroker differs on purpose.")
@click.option("--seed", type=int, help="Seed of generated ids, for repeatable runs.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the cluster in this directory and continue from its content.",
)
@click.option(
    "--sync", is_flag=True, help="With --data-dir: acknowledge only what is flushed to disk."
)
@click.option(
    "--load",
    type=click.Path(path_type=Path, file_okay=False),
    help="Start with the cluster in this directory, without changing the directory.",
)
@click.option("--recover", is_flag=True, help="Load damaged files up to the damage.")
@click.option(
    "--journal-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the journal as Parquet tables into this directory, as a new run.",
)
@click.option(
    "--journal-hops",
    is_flag=True,
    help="Record requests between brokers in the journal.",
)
@click.option(
    "--config-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the cluster from a TOML file. Flags override it.",
)
@click.option(
    "--example",
    type=click.Choice(["trading"]),
    help="Read the cluster from an included file: topics of a trading system.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the ready line to this file.",
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
        if in_background or pid_file or log_file:
            daemon = _daemon(in_background, pid_file, log_file)
            daemon.detach()
        tracer: Trace | None = None
        if trace:
            from mockbroker.server.network.trace import print_trace

            tracer = print_trace
        gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])
        trio.run(
            _serve,
            config,
            read_admin_options(
                config.listeners[0].host,
                admin_port=admin_port,
                no_admin=no_admin,
                allow_remote=allow_remote,
                admin_token_file=admin_token_file,
            ),
            ready_file,
            tracer,
            _print if daemon is None else daemon.announce,
            journal_dir,
            clock=AdjustableClock(),
        )
    except* (ServerError, ConfigError) as group:
        click.echo(f"mockbroker: {first_error(group)}", err=True)
        sys.exit(BAD_USAGE)
    except* KeyboardInterrupt:
        sys.exit(130)
    finally:
        if daemon is not None:
            daemon.end()


def _daemon(in_background: bool, pid_file: Path | None, log_file: Path | None) -> Daemon:
    """The daemon of the options. Raises ServerError where they do not fit."""
    if not in_background:
        raise ServerError("--pid-file and --log-file need --daemon")
    if not hasattr(os, "fork"):
        raise ServerError("--daemon needs a system that can fork")
    from mockbroker.cli.daemon import PID_FILE, Daemon

    return Daemon(pid_file or PID_FILE, log_file)
