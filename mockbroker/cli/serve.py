"""`mockbroker serve`: start a cluster, say when it is ready, stop at once when asked."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from pathlib import Path

import click
import trio

from mockbroker.actors.config import ListenerSpec, ServerConfig, ServerError, TopicSpec
from mockbroker.actors.connection import Trace
from mockbroker.actors.server import ClusterServer, open_server
from mockbroker.actors.steering import SteerableClock
from mockbroker.core.errors import ConfigError

DEFAULT_PORT = 9092
DEFAULT_ADMIN_PORT = 9191
BAD_USAGE = 2


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


def _node_ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ServerError(f"--node-ids {text}: expected numbers separated by commas") from None


def build_config(
    *,
    brokers: int | None,
    node_ids: str | None,
    rack: tuple[str, ...],
    host: str | None,
    port: int | None,
    advertised_host: str | None,
    topics: tuple[str, ...],
    configs: tuple[str, ...],
    kafka_version: str | None,
    seed: int | None,
    config_file: Path | None,
) -> ServerConfig:
    """The cluster that flags and config file describe; a flag outranks the file.

    Raises ServerError naming the flag or the field.
    """
    if config_file is not None:
        from mockbroker.cli.config_file import load, server_config

        base = server_config(load(config_file))
    else:
        base = ServerConfig(listeners=())
    listeners = list(base.listeners) or [ListenerSpec(port=DEFAULT_PORT)]
    first = listeners[0]
    listeners[0] = dataclasses.replace(
        first,
        host=first.host if host is None else host,
        port=first.port if port is None else port,
        advertised_host=first.advertised_host if advertised_host is None else advertised_host,
    )
    return dataclasses.replace(
        base,
        brokers=base.brokers if brokers is None else brokers,
        node_ids=base.node_ids if node_ids is None else _node_ids(node_ids),
        racks=list(rack) or base.racks,
        listeners=tuple(listeners),
        topics=[*base.topics, *(_topic(text) for text in topics)],
        configs={**base.configs, **dict(_config(text) for text in configs)},
        kafka_version=base.kafka_version if kafka_version is None else kafka_version,
        seed=base.seed if seed is None else seed,
    )


def _write_ready_file(path: Path, line: str) -> None:
    """Write the ready line so that a reader never sees half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(line + "\n")
    partial.replace(path)


async def _until_told_to_stop(task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            return


async def _serve(
    config: ServerConfig, admin_port: int | None, ready_file: Path | None, trace: Trace | None
) -> None:
    async with trio.open_nursery() as nursery:

        async def stop_on_signal(task_status: trio.TaskStatus[None]) -> None:
            await _until_told_to_stop(task_status)
            nursery.cancel_scope.cancel()

        await nursery.start(stop_on_signal)
        async with open_server(config, trace=trace) as server:
            await _announce_and_serve(server, config, admin_port, ready_file)


async def _announce_and_serve(
    server: ClusterServer, config: ServerConfig, admin_port: int | None, ready_file: Path | None
) -> None:
    line = f"ready bootstrap={server.bootstrap_servers}"
    admin = None
    try:
        if admin_port is not None:
            # Hypercorn and Starlette are imported in the admin thread, while the brokers serve.
            from mockbroker.admin import AdminError, ServerView, start_admin

            try:
                admin = await trio.to_thread.run_sync(
                    start_admin,
                    ServerView(server, trio.lowlevel.current_trio_token()),
                    config.listeners[0].host,
                    admin_port,
                )
            except AdminError as error:
                raise ServerError(str(error)) from None
            line += f" admin=http://{admin.host}:{admin.port}"
        print(line, flush=True)  # noqa: T201 - this line is what the command is for
        if ready_file is not None:
            _write_ready_file(ready_file, line)
        await trio.sleep_forever()
    finally:
        if ready_file is not None:
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
    "--admin-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_ADMIN_PORT,
    show_default=True,
    help="Port of /healthz and /metrics; 0 takes a free one.",
)
@click.option("--no-admin", is_flag=True, help="Serve no admin endpoint.")
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
    "--config-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the cluster from a TOML file; flags outrank it.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the ready line here too, once clients can connect.",
)
@click.option("--trace", is_flag=True, help="Print each request and its answer, one line each.")
def serve(
    admin_port: int, no_admin: bool, ready_file: Path | None, trace: bool, **options: object
) -> None:
    """Serve a Kafka cluster until interrupted.

    When clients can connect, one line is printed: ready bootstrap=HOST:PORT,…
    admin=http://HOST:PORT
    """
    try:
        config = build_config(**options)  # type: ignore[arg-type]
        tracer: Trace | None = None
        if trace:
            from mockbroker.actors.trace import print_trace

            tracer = print_trace
        trio.run(
            _serve,
            config,
            None if no_admin else admin_port,
            ready_file,
            tracer,
            clock=SteerableClock(),
        )
    except* (ServerError, ConfigError) as group:
        click.echo(f"mockbroker: {_first(group)}", err=True)
        sys.exit(BAD_USAGE)
    except* KeyboardInterrupt:
        sys.exit(130)


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
