"""The Kafka client, pool and Scala of each Spark's connector.

A connector must have Spark's own version; its dependencies change less often. The listed sets are
tested. Another version has the set of the nearest older one of its major version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from mockbroker.spark.errors import SparkSetupError
from mockbroker.spark.jars import Artifact

SPARK_GROUP = "org.apache.spark"
CONNECTOR = "spark-sql-kafka-0-10"
TOKEN_PROVIDER = "spark-token-provider-kafka-0-10"  # noqa: S105 - the name of a jar
CLIENTS = "kafka-clients"
POOL = "commons-pool2"


class Needs(NamedTuple):
    """The dependencies of a connector.

    `scala` is that of pyspark's own jars; `java` the oldest for Spark; `token_provider` is None if
    it has the connector's version.
    """

    scala: str
    java: int
    clients: str
    pool: str
    token_provider: str | None = None


NEEDS: Mapping[str, Needs] = {
    "3.5.1": Needs("2.12", 8, "3.4.1", "2.11.1"),
    "4.0.0": Needs("2.13", 17, "3.9.0", "2.12.0"),
    "4.2.0": Needs("2.13", 17, "3.9.2", "2.13.1", "4.0.0"),
}
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:[.-]?[A-Za-z]\w*)?")

Key = tuple[int, int, int]


def parse_version(text: str) -> Key:
    """(major, minor, patch). Raises SparkSetupError for an invalid version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise SparkSetupError(f"{text!r} is not a version of Spark: give one such as 4.0.0")
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def needs_of(spark_version: str) -> Needs:
    """The set of a version. Raises SparkSetupError for one older than all listed sets of its major
    version.
    """
    wanted = parse_version(spark_version)
    older = [
        version
        for version in NEEDS
        if parse_version(version) <= wanted and parse_version(version)[0] == wanted[0]
    ]
    if wanted == (3, 5, 0):
        older = ["3.5.1"]
    if not older:
        known = ", ".join(NEEDS)
        raise SparkSetupError(
            f"no connector is known for Spark {spark_version} (there are those of {known} and what "
            "follows them): put its jars in a directory and name it with --jars-dir"
        )
    return NEEDS[max(older, key=parse_version)]


def artifacts(spark_version: str, scala: str | None = None) -> list[Artifact]:
    """The four jars of a connector, the connector itself first."""
    needs = needs_of(spark_version)
    suffix = scala or needs.scala
    token_provider = needs.token_provider or spark_version
    return [
        Artifact(SPARK_GROUP, f"{CONNECTOR}_{suffix}", spark_version),
        Artifact(SPARK_GROUP, f"{TOKEN_PROVIDER}_{suffix}", token_provider),
        Artifact("org.apache.kafka", CLIENTS, needs.clients),
        Artifact("org.apache.commons", POOL, needs.pool),
    ]
