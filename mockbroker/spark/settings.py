"""Settings of a Spark that runs on this machine only and starts fast."""

from __future__ import annotations

from collections.abc import Mapping

LOOPBACK = "127.0.0.1"

# This machine's loopback address, whatever its hostname resolves to.
LOCAL: Mapping[str, str] = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
}

# A JVM that compiles little and collects on one thread starts in half the time.
FAST_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"

# For tests: a session for many small queries, on two cores.
SESSION: Mapping[str, str] = {
    **LOCAL,
    "spark.driver.extraJavaOptions": FAST_JVM,
    "spark.driver.memory": "1g",
    # Spark keeps an idle producer for ten minutes. That of a test whose cluster has stopped would
    # go on looking for its brokers, and might find those of another test at their ports.
    "spark.kafka.producer.cache.evictorThreadRunInterval": "5s",
    "spark.kafka.producer.cache.timeout": "5s",
    "spark.log.level": "OFF",  # errors of queries are raised as exceptions
    # Compiling the code of a query takes longer than interpreting it over a few rows.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# For programs under test: little output of Spark.
SUBMIT: Mapping[str, str] = {
    **LOCAL,
    "spark.driver.extraJavaOptions": FAST_JVM,
    "spark.log.level": "WARN",
    "spark.ui.showConsoleProgress": "false",
}
