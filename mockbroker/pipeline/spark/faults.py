"""The effect of each fault: hit requests, retries, and the recovery time of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


def faults(inputs: Inputs) -> DataFrame:
    """A row for each rule, and one without a rule for manual actions.

    A client has recovered from a hit with its next request to the same API that no rule changed and
    that was answered without an error. `recovery_ms` is the longest recovery on the cluster's
    clock. `retries` counts the requests until then, `recovered` the requests hit, not the effects.
    """
    inputs.derive("hits", _hits)
    return inputs.sql("""
        WITH touched AS (
            SELECT run, rule, at_seq, min(virtual_ms) AS virtual_ms, api, client_id FROM {hits}
            WHERE api IS NOT NULL AND client_id IS NOT NULL
            GROUP BY run, rule, at_seq, api, client_id
        ), well AS (
            SELECT t.run, t.rule, t.at_seq, t.virtual_ms, t.api, t.client_id,
                   min(struct(g.seq, g.virtual_ms)) AS good
            FROM touched t
            LEFT JOIN {requests} g
              ON g.run = t.run AND g.api = t.api AND g.client_id = t.client_id AND g.seq > t.at_seq
             AND g.outcome IS NULL AND coalesce(size(g.errors), 0) <= 0
             AND coalesce(size(g.rules), 0) <= 0
            GROUP BY t.run, t.rule, t.at_seq, t.virtual_ms, t.api, t.client_id
        ), again AS (
            SELECT w.run, w.rule, count(DISTINCT r.seq) AS retries
            FROM well w JOIN {requests} r
              ON r.run = w.run AND r.api = w.api AND r.client_id = w.client_id
             AND r.seq > w.at_seq AND r.seq <= w.good.seq
            GROUP BY w.run, w.rule
        ), recovery AS (
            SELECT run, rule, count(good.seq) AS recovered,
                   max(good.virtual_ms - virtual_ms) AS recovery_ms
            FROM well GROUP BY run, rule
        ), done AS (
            SELECT run, rule, concat_ws(', ', sort_array(collect_set(change))) AS effects,
                   count(DISTINCT seq, change) AS times,
                   count(DISTINCT IF(api IS NULL, NULL, at_seq)) AS requests,
                   concat_ws(', ', sort_array(collect_set(api))) AS apis,
                   min(virtual_ms) AS first_ms, max(virtual_ms) AS last_ms
            FROM {hits} GROUP BY run, rule
        )
        SELECT d.*, coalesce(a.retries, 0) AS retries, coalesce(v.recovered, 0) AS recovered,
               v.recovery_ms
        FROM done d
        LEFT JOIN again a ON a.run = d.run AND a.rule <=> d.rule
        LEFT JOIN recovery v ON v.run = d.run AND v.rule <=> d.rule
        ORDER BY d.run, d.first_ms, d.rule
    """)


def _hits(inputs: Inputs) -> DataFrame:
    return inputs.sql("""
        SELECT f.run, f.rule, f.seq, f.virtual_ms, f.change,
               coalesce(f.request_seq, f.seq) AS at_seq, r.api, r.client_id
        FROM (SELECT *, explode_outer(rules) AS rule FROM {faults}) f
        LEFT JOIN {requests} r ON r.run = f.run AND r.seq = f.request_seq
    """)


if __name__ == "__main__":
    main(faults)
