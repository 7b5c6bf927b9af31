"""The jars of `format("kafka")` for a version of Spark: from Maven or a directory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mockbroker.spark import jars
from mockbroker.spark.errors import MavenError, SparkSetupError
from mockbroker.spark.versions import CLIENTS, CONNECTOR, POOL, TOKEN_PROVIDER, artifacts, needs_of

JARS_ENVIRONMENT = "MOCKBROKER_SPARK_JARS"

_JAR = re.compile(r"(?P<name>.+?)(?:_(?P<scala>\d+\.\d+))?-(?P<version>\d[\w.]*(?:-\w+)?)\.jar")


class _Jar(NamedTuple):
    path: Path
    scala: str | None
    version: str


def connector_jars(
    spark_version: str, *, scala: str | None = None, jars_dir: Path | str | None = None
) -> list[Path]:
    """The jars for `spark.jars`.

    They come from `jars_dir`, from the directory in `MOCKBROKER_SPARK_JARS`, or from Maven, once
    for each version. `scala` is that of the Spark that will run ("2.13"); by default that of
    pyspark's own jars. Raises SparkSetupError with the remedy.
    """
    suffix = scala or needs_of(spark_version).scala
    directory = jars_dir or os.environ.get(JARS_ENVIRONMENT)
    if directory:
        return _from_directory(Path(directory), spark_version, suffix)
    wanted = artifacts(spark_version, suffix)
    try:
        return jars.resolve(f"spark-{spark_version}", jars.pom_of(wanted))
    except MavenError as error:
        names = ", ".join(each.file_name for each in wanted)
        why = str(error)
        if shutil.which("mvn") is None:
            why = "mvn is not on the PATH"
        raise SparkSetupError(
            f"the Kafka connector of Spark {spark_version} is not here, and {why}\n"
            f"Install Maven, or put {names} in a directory and name it with --jars-dir or "
            f"{JARS_ENVIRONMENT}."
        ) from None


# -- a directory -----------------------------------------------------------------------------------


def _from_directory(directory: Path, spark_version: str, scala: str) -> list[Path]:
    if not directory.is_dir():
        raise SparkSetupError(
            f"there is no directory {directory}: --jars-dir and {JARS_ENVIRONMENT} name the one "
            "that holds the connector's jars"
        )
    found = _jars_by_name(directory)
    connector = _fitting(found.get(CONNECTOR, []), CONNECTOR, directory, spark_version, scala)
    provider = _of_scala(found.get(TOKEN_PROVIDER, []), TOKEN_PROVIDER, directory, scala)
    others = [_any(found.get(name, []), name, directory) for name in (CLIENTS, POOL)]
    return [connector.path, _newest(provider).path, *(each.path for each in others)]


def _jars_by_name(directory: Path) -> dict[str, list[_Jar]]:
    found: dict[str, list[_Jar]] = {}
    for path in sorted(directory.glob("*.jar")):
        if (parts := _JAR.fullmatch(path.name)) is not None:
            jar = _Jar(path, parts["scala"], parts["version"])
            found.setdefault(parts["name"], []).append(jar)
    return found


def _fitting(
    jars_found: Sequence[_Jar], name: str, directory: Path, spark_version: str, scala: str
) -> _Jar:
    """The connector of exactly this Spark; one of another version fails late and obscurely."""
    of_scala = _of_scala(jars_found, name, directory, scala)
    for jar in of_scala:
        if jar.version == spark_version:
            return jar
    versions = ", ".join(jar.version for jar in of_scala)
    raise SparkSetupError(
        f"the connector in {directory} is of version {versions}, but this is Spark "
        f"{spark_version}: put {name}_{scala}-{spark_version}.jar there"
    )


def _of_scala(jars_found: Sequence[_Jar], name: str, directory: Path, scala: str) -> Sequence[_Jar]:
    _any(jars_found, f"{name}_{scala}", directory)
    fitting = [jar for jar in jars_found if jar.scala == scala]
    if not fitting:
        raise SparkSetupError(
            f"{jars_found[0].path.name} is for Scala {jars_found[0].scala}, but Spark's own jars "
            f"here are for Scala {scala}: take {name}_{scala} instead"
        )
    return fitting


def _any(jars_found: Sequence[_Jar], name: str, directory: Path) -> _Jar:
    if not jars_found:
        raise SparkSetupError(
            f"{directory} holds no {name}-*.jar: the connector needs {CONNECTOR}, "
            f"{TOKEN_PROVIDER}, {CLIENTS} and {POOL}"
        )
    return _newest(jars_found)


def _newest(jars_found: Sequence[_Jar]) -> _Jar:
    return max(jars_found, key=lambda jar: [int(part) for part in re.findall(r"\d+", jar.version)])
