"""One Spark session, that of the fixtures, and one cluster for all tests; topics are each test's
own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mockbroker import Cluster
from tests.spark.steps import SparkKafka
from tests.support.request_log import RequestLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPRECATED_OFFSET_FETCHING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"

# Data sources in Python are of Spark 4.
if version("pyspark").startswith("3."):
    collect_ignore = ["test_source.py"]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark_settings() -> Mapping[str, str]:
    return {"spark.sql.session.timeZone": "UTC"}


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
    kafka.topic(name).create(4)
    return name


@pytest.fixture
def other_topic(kafka: Cluster) -> str:
    """A second topic of four partitions."""
    name = f"other-topic-{next(_numbers)}"
    kafka.topic(name).create(4)
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
