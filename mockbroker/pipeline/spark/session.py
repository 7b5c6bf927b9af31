"""The Spark session of the jobs: the active one or a local one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockbroker.extras import missing
from mockbroker.pipeline.spark.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Bytes of Parquet for one task of a shuffle.
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

    `master` ("local[2]") and `memory` of the driver ("4g") apply only to a local session. Raises
    JobError if PySpark or Java is missing.
    """
    try:
        from pyspark import __version__
        from pyspark.sql import SparkSession
    except ImportError:
        raise JobError(missing("the jobs need", "pyspark")) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName(app_name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # set by spark-submit: a JVM runs already
        from mockbroker.spark.errors import SparkSetupError
        from mockbroker.spark.installation import check_java

        try:
            check_java(__version__)
        except SparkSetupError as error:
            raise JobError(str(error)) from None
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # The JVM may be unable to reach the address of this machine's own name.
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
            f"Spark did not start: {str(error).strip().splitlines()[0]}; see the output of its "
            "JVM above, and check that JAVA_HOME or the PATH lead to Java 17"
        ) from error


def fit(spark: SparkSession, input_bytes: int) -> int:
    """Set the number of partitions of a shuffle by the size of the input, and return it.

    Spark's default of 200 makes a small audit slow and a big one spill. Adaptive execution begins
    with this number and joins small partitions.
    """
    cores = spark.sparkContext.defaultParallelism
    wanted = max(cores, -(-input_bytes // TASK_BYTES))
    partitions = min(PARTITIONS_MAX, -(-wanted // cores) * cores)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return partitions
