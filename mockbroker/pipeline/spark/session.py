"""A Spark session that the jobs can run in: the one that is there, or one made here."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Bytes of Parquet that one task of a shuffle should have to deal with.
TASK_BYTES = 8 << 20
PARTITIONS_MAX = 400

SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    app_name: str = "mockbroker",
    *,
    master: str | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active session, as under spark-submit and in notebooks; without one, a local session.

    `master` ("local[2]") and `memory` of the driver ("4g") count only where a session is made.
    Raises JobError when PySpark or Java are missing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise JobError("PySpark is not installed: pip install 'mockbroker[spark]'") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName(app_name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has a JVM, and says where
    if not submitted:
        _check_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # The name of this machine need not lead to an address that its own JVM can reach.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(master or "local[*]")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        if memory is not None:
            builder = builder.config("spark.driver.memory", memory)
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise JobError(
            f"Spark did not start: {str(error).strip().splitlines()[0]}; see what its JVM wrote "
            "above, and whether Java 17 is the one that JAVA_HOME or the PATH lead to"
        ) from error


def fit(spark: SparkSession, input_bytes: int) -> int:
    """Set the number of partitions of a shuffle by the size of the input, and return it.

    Spark's default of 200 makes a small audit slow, and a big one spill. With adaptive execution
    the number is where it begins; Spark joins those that turn out small.
    """
    cores = spark.sparkContext.defaultParallelism
    wanted = max(cores, -(-input_bytes // TASK_BYTES))
    partitions = min(PARTITIONS_MAX, -(-wanted // cores) * cores)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return partitions


def _check_java() -> None:
    """Raises JobError unless Spark's scripts would find a Java: JAVA_HOME outranks the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").is_file():
        raise JobError(f"JAVA_HOME is {home}, but there is no bin/java: let it lead to a Java 17")
    if not home and shutil.which("java") is None:
        raise JobError("there is no Java: install Java 17, or let JAVA_HOME or the PATH lead to it")
