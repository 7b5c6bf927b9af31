"""The command line and the environment of a spark-submit for a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mockbroker.spark.connector import connector_jars
from mockbroker.spark.installation import Installation, check_java, find_spark
from mockbroker.spark.settings import LOOPBACK, SUBMIT

# Spark 4 leaves this directory, empty, in its working directory.
ARTIFACTS = "artifacts"

# The options of spark-submit without a value.
_FLAGS = ("--help", "-h", "--supervise", "--usage-error", "--verbose", "-v", "--version")


class Submission(NamedTuple):
    """A call of spark-submit: Spark, the connector's jars, the user's arguments."""

    spark: Installation
    jars: tuple[Path, ...]
    arguments: tuple[str, ...]

    def command(self, scratch: Path) -> list[str]:
        """The whole command. The user's settings come last and take precedence."""
        own, rest = _jars_of(self.arguments)
        settings = {"spark.sql.warehouse.dir": str(scratch / "warehouse")}
        if _is_local(self.arguments):
            settings |= SUBMIT
        words = [str(self.spark.home / "bin" / "spark-submit")]
        for name, value in settings.items():
            words += ["--conf", f"{name}={value}"]
        return [*words, "--jars", ",".join([*map(str, self.jars), *own]), *rest]

    def environment(self, scratch: Path, addresses: Mapping[str, str]) -> dict[str, str]:
        """The environment of this process, the cluster's addresses, and directories for Spark."""
        found = {"PYSPARK_PYTHON": sys.executable, **os.environ, **addresses}
        if _is_local(self.arguments):
            # The machine's hostname may not resolve to this machine.
            found.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        found["SPARK_HOME"] = str(self.spark.home)
        found.setdefault("SPARK_LOCAL_DIRS", str(scratch / "local"))
        return found


def prepare(
    arguments: Sequence[str], *, spark_version: str | None = None, jars_dir: Path | None = None
) -> Submission:
    """Find Spark, Java and the jars. Raises SparkSetupError with the remedy."""
    spark = find_spark(spark_version)
    check_java(spark.version)
    jars = connector_jars(spark.version, scala=spark.scala, jars_dir=jars_dir)
    return Submission(spark, tuple(jars), tuple(arguments))


@contextmanager
def scratch_dir() -> Iterator[Path]:
    """A directory for Spark's temporary files; removed at the end."""
    with (
        tidy_working_directory(),
        TemporaryDirectory(prefix="mockbroker-spark-", ignore_cleanup_errors=True) as folder,
    ):
        yield Path(folder)


@contextmanager
def tidy_working_directory() -> Iterator[None]:
    """Remove the empty directory that Spark 4 leaves in its working directory."""
    artifacts = Path(ARTIFACTS).absolute()
    was_there = artifacts.exists()
    try:
        yield
    finally:
        if not was_there:
            with suppress(OSError):  # absent, or not empty
                artifacts.rmdir()


def _is_local(arguments: Sequence[str]) -> bool:
    """Whether the executors are on this machine: the default of `--master`."""
    masters = [value for name, value, _ in _options(arguments) if name == "--master"]
    return not masters or masters[-1].startswith("local")


def _jars_of(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The user's own `--jars`, which spark-submit accepts only once, and the other arguments."""
    own: list[str] = []
    rest = list(arguments)
    for name, value, place in reversed(list(_options(arguments))):
        if name == "--jars":
            own.insert(0, value)
            del rest[place]
    return own, rest


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str, slice]]:
    """spark-submit's own options with their values and positions, up to the program."""
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        name, equals, value = arguments[place].partition("=")
        width = 1
        if not equals and name not in _FLAGS and place + 1 < len(arguments):
            value = arguments[place + 1]
            width = 2
        yield name, value, slice(place, place + width)
        place += width
