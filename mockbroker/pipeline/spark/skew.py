"""The distribution of records over partitions and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def skew(inputs: Inputs) -> DataFrame:
    """A row for each partition; `skew` 1 is an even share of its topic's records."""
    return inputs.sql("""
        WITH keys AS (
            SELECT run, topic, topic_id, partition, key_hash, count(*) AS records
            FROM {records} GROUP BY run, topic, topic_id, partition, key_hash
        ), counted AS (
            SELECT run, topic, topic_id, partition, sum(records) AS records,
                   count(key_hash) AS keys,
                   max(IF(key_hash IS NULL, NULL, records)) AS records_of_hottest_key,
                   coalesce(sum(IF(key_hash IS NULL, records, NULL)), 0) AS without_key
            FROM keys GROUP BY run, topic, topic_id, partition
        )
        SELECT run, topic, topic_id, partition, records,
               round(records / sum(records) OVER of_topic, 4) AS share,
               round(records / avg(records) OVER of_topic, 2) AS skew,
               keys, records_of_hottest_key, without_key
        FROM counted
        WINDOW of_topic AS (PARTITION BY run, topic_id)
        ORDER BY run, topic, partition
    """)


def hot_keys(inputs: Inputs, count: int = 10) -> DataFrame:
    """The most frequent keys of each topic, by hash, and their share of the topic."""
    return inputs.sql(f"""
        SELECT run, topic, topic_id, key_hash, records, partitions,
               round(records / total, 4) AS share
        FROM (
            SELECT run, topic, topic_id, key_hash, count(*) AS records,
                   count(DISTINCT partition) AS partitions,
                   sum(count(*)) OVER (PARTITION BY run, topic_id) AS total,
                   row_number() OVER (
                       PARTITION BY run, topic_id ORDER BY count(*) DESC, key_hash) AS place
            FROM {{records}} WHERE key_hash IS NOT NULL
            GROUP BY run, topic, topic_id, key_hash
        )
        WHERE place <= {int(count)}
        ORDER BY run, topic, records DESC, key_hash
    """)


if __name__ == "__main__":
    main(skew, hot_keys)
