"""Running Spark against a cluster: the installed Spark and its Kafka connector.

Nouns: the *installation* is the installed Spark, pyspark's own or that of SPARK_HOME. The
*connector* is `format("kafka")`: four jars that pyspark does not include, with versions and a Scala
that fit the installation. A *submission* is a call of the installation's spark-submit.

Nothing here imports pyspark, and each name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.spark.connector import connector_jars
    from mockbroker.spark.errors import SparkSetupError
    from mockbroker.spark.installation import Installation, find_spark

__all__ = ["Installation", "SparkSetupError", "connector_jars", "find_spark"]

_HOMES = {
    "Installation": "installation",
    "SparkSetupError": "errors",
    "connector_jars": "connector",
    "find_spark": "installation",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"mockbroker.spark.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
