"""`mockbroker serve`: start a cluster, say when it is ready, stop at once when asked."""

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

from mockbroker.actors.config import (
    PORT_MAX,
    ListenerSpec,
    ServerConfig,
    ServerError,
    TopicSpec,
)
from mockbroker.actors.connection import Trace
from mockbroker.actors.server import ClusterServer, open_server
from mockbroker.actors.steering import SteerableClock
from mockbroker.cli.admin_options import AdminOptions, admin_options, read_admin_options
from mockbroker.core.errors import ConfigError, first_error

if TYPE_CHECKING:
    from mockbroker.cli.daemon import Daemon
    from mockbroker.pipeline.spool.keeping import JournalKeeper

DEFAULT_PORT = 9092
BAD_USAGE = 2
EXAMPLES = Path(__file__).parent / "examples"
# New objects between two looks for garbage, of which a broker makes hardly any: with Python's 700,
# looking takes as long as creating ten thousand partitions does.
COLLECT_EVERY = 10_000


def _topic(text: str) -> TopicSpec:
    """NAME:PARTITIONS[:RF]. Raises ServerError on anything else."""
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
    """NAME:PROTOCOL:PORT, or PROTOCOL:PORT for a listener called like its protocol."""
    parts = text.split(":")
    if len(parts) == 2:
        parts = [parts[0], *parts]
    if len(parts) != 3 or not parts[0] or not parts[2].isdecimal() or int(parts[2]) > PORT_MAX:
        raise ServerError(f"--listener {text}: expected NAME:PROTOCOL:PORT")
    return ListenerSpec(parts[0], port=int(parts[2]), security_protocol=parts[1].upper())


def _user(text: str) -> tuple[str, str]:
    """NAME:PASSWORD; the message about anything else keeps what may be a password to itself."""
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
    """The node ids, None for 1, 2, 3, …; --brokers alone sets those of the file aside.

    What is `stored` says which brokers there are, so there --brokers is a claim to be checked.
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
    topics: tuple[str, ...],
    configs: tuple[str, ...],
    kafka_version: str | None,
    seed: int | None,
    config_file: Path | None,
    example: str | None = None,
) -> ServerConfig:
    """The cluster that flags and config file describe; a flag outranks the file.

    Raises ServerError naming the flag or the field.
    """
    if example is not None:
        if config_file is not None:
            raise ServerError("--example and --config-file: a cluster is described once")
        config_file = EXAMPLES / f"{example}.toml"
    if config_file is not None:
        from mockbroker.cli import config_file as files

        base = files.server_config(files.load(config_file))
    else:
        base = ServerConfig(listeners=())
    data_dir = data_dir or base.data_dir
    if recover and data_dir is None and load is None:
        raise ServerError("--recover is for --data-dir or --load")
    if sync and data_dir is None:
        raise ServerError("--sync is for --data-dir")
    if listeners and port is not None:
        raise ServerError("--port and --listener: a listener names its port itself")
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
        seed=base.seed if seed is None else seed,
        users={**base.users, **dict(_user(text) for text in users)},
        security_directory=security_dir or base.security_directory,
        allow_unsigned_tokens=allow_unsigned_tokens or base.allow_unsigned_tokens,
        data_dir=data_dir,
        sync=sync or base.sync,
        load=load,
        recover=recover,
    )


def _write_ready_file(path: Path, line: str) -> None:
    """Write the ready line so that a reader never sees half of it. Raises ServerError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(line + "\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ServerError(f"cannot write the ready file {path}: {error.strerror}") from None


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this line is what the command is for


async def _until_told_to_stop(task_status: trio.TaskStatus[None]) -> None:
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
    keeper: JournalKeeper | None = None
    async with trio.open_nursery() as nursery:

        async def stop_on_signal(task_status: trio.TaskStatus[None]) -> None:
            await _until_told_to_stop(task_status)
            nursery.cancel_scope.cancel()

        await nursery.start(stop_on_signal)
        try:
            async with open_server(config, trace=trace) as server:
                if journal_dir is not None:
                    from mockbroker.cli.kept_journal import keep_journal

                    keeper = keep_journal(server.cluster, journal_dir)
                await _announce_and_serve(server, config, api, ready_file, announce)
        finally:
            if keeper is not None:
                keeper.stop()
    if keeper is not None:
        from mockbroker.cli.kept_journal import close_journal

        await trio.to_thread.run_sync(close_journal, keeper)


def _other_listeners(server: ClusterServer, config: ServerConfig) -> str:
    """For the ready line: the addresses of the listeners after the first, and where files are."""
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
            from mockbroker.admin import AdminError, ServerView, start_admin

            try:
                admin = await trio.to_thread.run_sync(
                    partial(
                        start_admin,
                        ServerView(server, trio.lowlevel.current_trio_token()),
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


@click.command()
@click.option("--brokers", type=click.IntRange(1, 1000), help="Number of brokers.  [default: 3]")
@click.option("--node-ids", metavar="ID,ID,…", help="Node ids instead of 1, 2, 3, …")
@click.option("--rack", multiple=True, help="Rack of each broker, in order; repeat it.")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Broker i listens on PORT+i; 0 takes free ports.  [default: {DEFAULT_PORT}]",
)
@click.option("--advertised-host", metavar="HOST", help="Host that clients are told to connect to.")
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    metavar="NAME:PROTOCOL:PORT",
    help="Listen like this: PROTOCOL is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; repeat it.",
)
@click.option(
    "--user", "users", multiple=True, metavar="NAME:PASSWORD", help="Let a user in by SASL."
)
@click.option(
    "--security-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the certificates and keys that clients need here.  [default: a temporary one]",
)
@click.option(
    "--allow-unsigned-tokens", is_flag=True, help="Let OAUTHBEARER clients in with any token."
)
@admin_options
@click.option(
    "--topic", "topics", multiple=True, metavar="NAME:PARTITIONS[:RF]", help="Make a topic."
)
@click.option(
    "--config", "configs", multiple=True, metavar="NAME=VALUE", help="Set a Kafka broker config."
)
@click.option(
    "--kafka-version", metavar="VERSION", help="Offer what that release offers (2.8 … 4.3)."
)
@click.option("--seed", type=int, help="Draw ids from this seed, for runs that repeat.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the cluster in this directory, and go on from what is there.",
)
@click.option(
    "--sync", is_flag=True, help="With --data-dir: acknowledge only what the disk says it has."
)
@click.option(
    "--load",
    type=click.Path(path_type=Path, file_okay=False),
    help="Begin with the cluster that was saved in this directory, and leave it as it is.",
)
@click.option(
    "--recover", is_flag=True, help="Of damaged files keep all that is before the damage."
)
@click.option(
    "--journal-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write all that happens as Parquet tables into this directory, as a run of its own.",
)
@click.option(
    "--config-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the cluster from a TOML file; flags outrank it.",
)
@click.option(
    "--example",
    type=click.Choice(["trading"]),
    help="Read the cluster from a file that comes along: topics of a trading system.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the ready line here too, once clients can connect.",
)
@click.option(
    "--daemon",
    "in_background",
    is_flag=True,
    help="Go into the background once clients can connect; `mockbroker stop` ends it.",
)
@click.option(
    "--pid-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --daemon: write the process id here.  [default: mockbroker.pid]",
)
@click.option(
    "--log-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --daemon: append here what it prints.  [default: nowhere]",
)
@click.option("--trace", is_flag=True, help="Print each request and its answer, one line each.")
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
    """Serve a Kafka cluster until interrupted.

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
            from mockbroker.actors.trace import print_trace

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
            clock=SteerableClock(),
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
    """Raises ServerError where there is no background to go into."""
    if not in_background:
        raise ServerError("--pid-file and --log-file are for --daemon")
    if not hasattr(os, "fork"):
        raise ServerError("--daemon needs a system that can fork")
    from mockbroker.cli.daemon import PID_FILE, Daemon

    return Daemon(pid_file or PID_FILE, log_file)
