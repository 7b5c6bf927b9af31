"""One Spark session and one cluster for all tests of Spark; topics are each test's own."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mockbroker_fixtures import Cluster
from tests.spark.steps import SparkKafka
from tests.support.maven import JVM_FLAGS, jars
from tests.support.request_log import RequestLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPRECATED_OFFSET_FETCHING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

HEAP = "1g"

# Spark sets the heap itself; the other flags halve its start.
JAVA_OPTIONS = " ".join(flag for flag in JVM_FLAGS if not flag.startswith("-Xmx"))

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": HEAP,
    "spark.log.level": "OFF",  # what a query fails with is raised; the rest is noise
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark on two threads with the connector's jars; started once, for it takes long."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # A worker of pytest-xdist has a hostname to look up that may not be its loopback address.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("mockbroker")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.jars", ",".join(map(str, jars("spark"))))
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def requests() -> RequestLog:
    """Every request that reached the cluster, those of earlier tests included."""
    return RequestLog()


@pytest.fixture(scope="session")
def kafka(requests: RequestLog) -> Iterator[Cluster]:
    """The cluster; it outlives the tests because Spark keeps its consumers and producers."""
    with Cluster(brokers=3, trace=requests) as cluster:
        yield cluster


@pytest.fixture
def steps(
    spark: SparkSession, kafka: Cluster, requests: RequestLog, tmp_path: Path
) -> Iterator[SparkKafka]:
    """What a test says to Spark; the queries it started are stopped at its end."""
    requests.clear()
    steps = SparkKafka(spark, kafka, tmp_path)
    yield steps
    for query in spark.streams.active:
        query.stop()


@pytest.fixture
def topic(kafka: Cluster) -> str:
    """A topic of four partitions."""
    name = f"topic-{next(_numbers)}"
    kafka.create_topic(name, 4)
    return name


@pytest.fixture
def other_topic(kafka: Cluster) -> str:
    """A second topic of four partitions."""
    name = f"other-topic-{next(_numbers)}"
    kafka.create_topic(name, 4)
    return name


@pytest.fixture
def offsets_by_consumer(spark: SparkSession) -> Iterator[None]:
    """The driver looks up offsets with a consumer, the deprecated way."""
    spark.conf.set(DEPRECATED_OFFSET_FETCHING, "true")
    yield
    spark.conf.unset(DEPRECATED_OFFSET_FETCHING)


@pytest.fixture(params=["admin", "consumer"])
def offset_fetching(request: pytest.FixtureRequest) -> str:
    """With which client the driver looks up offsets: Spark's default, then the deprecated one."""
    if request.param == "consumer":
        request.getfixturevalue("offsets_by_consumer")
    return str(request.param)
