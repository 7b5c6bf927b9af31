"""The installed Spark, and its Java."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from mockbroker.extras import missing
from mockbroker.spark.errors import SparkSetupError
from mockbroker.spark.versions import needs_of, parse_version

JAVA_TIMEOUT_S = 60

_CORE = re.compile(r"spark-core_(\d+\.\d+)-(.+)\.jar")
# `java -version` prints 17.0.15, 21, or, for Java 8, 1.8.0_392.
_JAVA = re.compile(r'version "(?:1\.)?(\d+)')


class Installation(NamedTuple):
    """A Spark on this machine: its directory, version, and the Scala of its jars ("2.13")."""

    home: Path
    version: str
    scala: str


def find_spark(wanted: str | None = None) -> Installation:
    """The Spark of SPARK_HOME, or pyspark's own.

    Raises SparkSetupError without a Spark, with another version than `wanted`, or when SPARK_HOME
    and pyspark have different versions: driver and JVM must have the same.
    """
    python = _pyspark_version()
    home = os.environ.get("SPARK_HOME")
    found = _read(Path(home), "SPARK_HOME") if home else _read(_pyspark_home(), "pyspark")
    if parse_version(python) != parse_version(found.version):
        raise SparkSetupError(
            f"SPARK_HOME is Spark {found.version}, but pyspark is {python}: unset SPARK_HOME, or "
            f"pip install pyspark=={found.version}"
        )
    if wanted is not None and parse_version(wanted) != parse_version(found.version):
        raise SparkSetupError(
            f"Spark {wanted} is wanted, but {found.version} is installed: "
            f"pip install pyspark=={wanted}"
        )
    return found


def _pyspark_version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise SparkSetupError(missing("Spark needs", "pyspark")) from None


def _pyspark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkSetupError(missing("Spark needs", "pyspark"))
    return Path(spec.origin).parent


def _read(home: Path, whose: str) -> Installation:
    for path in (home / "jars").glob("spark-core_*.jar"):
        if (found := _CORE.fullmatch(path.name)) is not None:
            return Installation(home, found.group(2), found.group(1))
    raise SparkSetupError(
        f"{home}, the directory of {whose}, holds no jars/spark-core_*.jar and so no Spark: "
        "unset SPARK_HOME, or pip install pyspark (pyspark-client alone cannot run one)"
    )


def check_java(spark_version: str) -> int:
    """The major version of Java, from JAVA_HOME or else from the PATH, as Spark's scripts find it.

    Raises SparkSetupError if Java is missing or too old for this Spark.
    """
    oldest = needs_of(spark_version).java
    remedy = f"install Java 17, and let JAVA_HOME or the PATH lead to it (Spark {spark_version} "
    remedy += f"runs on Java {oldest} or newer)"
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise SparkSetupError(f"there is no Java: {remedy}")
    if not Path(program).is_file():
        raise SparkSetupError(f"JAVA_HOME is {home}, which has no bin/java: {remedy}")
    try:
        done = subprocess.run(
            [program, "-version"],
            capture_output=True,
            text=True,
            timeout=JAVA_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkSetupError(f"{program} does not run ({error}): {remedy}") from None
    found = _JAVA.search(done.stderr + done.stdout)
    if done.returncode != 0 or found is None:
        raise SparkSetupError(f"{program} does not print its version: {remedy}")
    major = int(found.group(1))
    if major < oldest:
        raise SparkSetupError(f"{program} is Java {major}: {remedy}")
    return major
