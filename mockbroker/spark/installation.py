"""The Spark that would run here, and its Java."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from mockbroker.spark.errors import SparkSetupError
from mockbroker.spark.versions import needs_of, parse_version

JAVA_TIMEOUT_S = 60

_CORE = re.compile(r"spark-core_(\d+\.\d+)-(.+)\.jar")
# `java -version` says 17.0.15, 21, or 1.8.0_392 for what is called Java 8.
_JAVA = re.compile(r'version "(?:1\.)?(\d+)')


class Installation(NamedTuple):
    """A Spark on this machine: its directory, version, and the Scala of its jars ("2.13")."""

    home: Path
    version: str
    scala: str


def find_spark(wanted: str | None = None) -> Installation:
    """The Spark of SPARK_HOME, or the one that pyspark brings.

    Raises SparkSetupError when there is none, when it is not of the version `wanted`, or when
    SPARK_HOME and pyspark disagree: a driver of one version cannot talk to a JVM of another.
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
        raise SparkSetupError("pyspark is not installed: pip install 'mockbroker[spark]'") from None


def _pyspark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkSetupError("pyspark is not installed: pip install 'mockbroker[spark]'")
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
    """The major version of the Java that Spark would start. Raises SparkSetupError if it is
    missing, or too old for this Spark.
    """
    oldest = needs_of(spark_version).java
    remedy = f"install Java 17, and let JAVA_HOME or the PATH lead to it (Spark {spark_version} "
    remedy += f"runs on Java {oldest} or newer)"
    program = _java()
    if program is None:
        raise SparkSetupError(f"there is no Java: {remedy}")
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
        raise SparkSetupError(f"{program} does not say which Java it is: {remedy}")
    major = int(found.group(1))
    if major < oldest:
        raise SparkSetupError(f"{program} is Java {major}: {remedy}")
    return major


def _java() -> str | None:
    """The program that Spark's scripts would start: JAVA_HOME outranks the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        return str(program) if program.is_file() else None
    return shutil.which("java")
