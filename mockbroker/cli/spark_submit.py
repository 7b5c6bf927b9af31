"""`mockbroker spark-submit [options] [--] app.py …`: a Spark program on a cluster of its own.

The program gets the brokers in `MOCKBROKER_BOOTSTRAP` and the admin API in `MOCKBROKER_ADMIN`. It
runs in a process group of its own, which is killed when the command ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import click
import trio

from mockbroker.cli.common import BOOTSTRAP_ENVIRONMENT
from mockbroker.cli.own_cluster import addresses_of
from mockbroker.cli.serve import build_config
from mockbroker.core.errors import ConfigError, first_error
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.cluster_server import open_server
from mockbroker.server.config import ServerConfig, ServerError
from mockbroker.spark.errors import SparkSetupError
from mockbroker.spark.submit import Submission, prepare, scratch_dir

# The time from the first signal until Spark is killed.
PATIENCE_S = 15.0
BY_SIGNAL = 128


@click.command(
    "spark-submit",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--spark-version",
    metavar="VERSION",
    help="Required version of the installed Spark.  [default: any]",
)
@click.option(
    "--jars-dir",
    type=click.Path(path_type=Path),
    envvar="MOCKBROKER_SPARK_JARS",
    show_envvar=True,
    metavar="DIR",
    help="Directory of the connector's jars, instead of Maven.",
)
@click.option("--brokers", type=click.IntRange(min=1), help="Brokers of the cluster.  [default: 3]")
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
    help="A broker config of the cluster. May be repeated.",
)
@click.option(
    "--config-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A config file as for `serve --config-file`.",
)
@click.option(
    "--bootstrap-server",
    "--bootstrap-servers",
    "-b",
    "bootstrap",
    metavar="HOST:PORT,…",
    help="Use this cluster instead of a new one.",
)
@click.argument(
    "arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--] [SPARK-OPTIONS] APP [ARGS]…"
)
def spark_submit(
    spark_version: str | None,
    jars_dir: Path | None,
    brokers: int | None,
    topics: tuple[str, ...],
    configs: tuple[str, ...],
    config_file: Path | None,
    bootstrap: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Run APP by spark-submit with the Kafka connector, on its own cluster.

    The exit code is spark-submit's. Options of spark-submit come before APP.
    """
    if not arguments:
        raise click.UsageError("missing APP")
    config = None
    if bootstrap is None:
        try:
            config = _cluster(brokers, topics, configs, config_file)
        except ServerError as error:
            raise click.UsageError(str(error)) from None
    elif brokers is not None or topics or configs or config_file is not None:
        raise click.UsageError("--bootstrap-server excludes the options of a new cluster")
    try:
        submission = prepare(arguments, spark_version=spark_version, jars_dir=jars_dir)
    except SparkSetupError as error:
        raise click.ClickException(str(error)) from None
    try:
        return trio.run(_run, submission, config, bootstrap, clock=AdjustableClock())
    except* (ServerError, ConfigError) as errors:
        raise click.UsageError(str(first_error(errors))) from None


def _cluster(
    brokers: int | None, topics: tuple[str, ...], configs: tuple[str, ...], file: Path | None
) -> ServerConfig:
    return build_config(
        brokers=brokers,
        node_ids=None,
        rack=(),
        host=None,
        port=0,
        advertised_host=None,
        topics=topics,
        configs=configs,
        kafka_version=None,
        seed=None,
        config_file=file,
    )


async def _run(submission: Submission, config: ServerConfig | None, bootstrap: str | None) -> int:
    if config is None:
        return await _submit(submission, {BOOTSTRAP_ENVIRONMENT: bootstrap or ""})
    async with open_server(config) as server:
        with addresses_of(server) as addresses:
            return await _submit(submission, addresses)


async def _submit(submission: Submission, addresses: Mapping[str, str]) -> int:
    """Run it and forward signals; returns its exit code, 128 + n after signal n."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals, scratch_dir() as own:
        process = await trio.lowlevel.open_process(
            submission.command(own),
            env=submission.environment(own, addresses),
            process_group=0,
        )
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_forward_signals, signals, process)
                status = await process.wait()
                nursery.cancel_scope.cancel()
        finally:
            _signal_group(process, signal.SIGKILL)
    return BY_SIGNAL - status if status < 0 else status


async def _forward_signals(signals: AsyncIterator[int], process: trio.Process) -> None:
    """Forward the first signal to Spark; kill it at the second, or after PATIENCE_S."""
    _signal_group(process, await anext(signals))
    # Real time: the cluster's clock, which is trio's here, may be frozen.
    impatience = threading.Timer(PATIENCE_S, _signal_group, (process, signal.SIGKILL))
    impatience.start()
    try:
        await anext(signals)
        _signal_group(process, signal.SIGKILL)
    finally:
        impatience.cancel()


def _signal_group(process: trio.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
