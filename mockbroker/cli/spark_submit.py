"""`mockbroker spark-submit [options] [--] app.py …`: a Spark program on a cluster of its own.

The program gets the brokers in `MOCKBROKER_BOOTSTRAP` and the admin API in `MOCKBROKER_ADMIN`. It
runs in a process group of its own, which is killed when the command ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import trio

from mockbroker.cli import environment
from mockbroker.cli.admin_options import LOCAL_ADMIN
from mockbroker.cli.cluster_options import build_config
from mockbroker.cli.programs import run_program
from mockbroker.cli.serving import serving
from mockbroker.core.errors import ConfigError, first_error
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.config import ServerConfig, ServerError
from mockbroker.spark.errors import SparkSetupError
from mockbroker.spark.submit import Submission, prepare, scratch_dir


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
        return await _submit(submission, {environment.BOOTSTRAP: bootstrap or ""})
    async with serving(config, LOCAL_ADMIN) as cluster:
        await cluster.start_admin()
        return await _submit(submission, cluster.environment())


async def _submit(submission: Submission, addresses: Mapping[str, str]) -> int:
    """Run it; returns its exit code, 128 + n after signal n."""
    with scratch_dir() as own:
        return await run_program(submission.command(own), submission.environment(own, addresses))
