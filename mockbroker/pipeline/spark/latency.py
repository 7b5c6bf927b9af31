"""The latency of requests by API and client, in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def latency(inputs: Inputs) -> DataFrame:
    """Percentiles in microseconds from the request to its answer, the waits of Fetches included."""
    percentiles = ",".join(
        f"CAST(round(percentile(elapsed_ns, {share}) / 1000) AS bigint) AS {name}_us"
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    )
    return inputs.sql(f"""
        SELECT run, api, client_id, count(*) AS requests, {percentiles},
               CAST(round(max(elapsed_ns) / 1000) AS bigint) AS max_us,
               count_if(size(errors) > 0) AS with_errors,
               count_if(outcome IS NOT NULL) AS without_answer
        FROM {{requests}} WHERE elapsed_ns IS NOT NULL
        GROUP BY run, api, client_id
        ORDER BY run, api, client_id
    """)


if __name__ == "__main__":
    main(latency)
