"""Rebalances of groups: causes, durations, members and moved partitions; and owners over time.

A rebalance begins when the group leaves a stable state (classic: to PreparingRebalance) and ends
when it is stable again; `back_ms` is when the last member works again: its first answered Fetch
after it got its partitions or, without any, the answer that assigned them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

STABLE = "('Stable', 'Empty', 'Dead')"


def rebalances(inputs: Inputs) -> DataFrame:
    """A row for each rebalance; times on the cluster's clock.

    `restarts` is the number of its restarts, `moved` the number of partitions with another member
    than before. `stopped_ms` is the longest time between start and end without an answered Fetch of
    any member.
    """
    inputs.derive("spans", _spans, checkpoint=True)
    inputs.derive("handed", _handed, checkpoint=True)
    inputs.derive("rebalance_spans", _whole, checkpoint=True)
    return inputs.sql("""
        WITH pulse AS (
            SELECT run, `group`, number, start_ms AS at_ms FROM {rebalance_spans}
            UNION
            SELECT run, `group`, number, end_ms FROM {rebalance_spans}
            UNION
            SELECT w.run, w.`group`, w.number, f.virtual_ms
            FROM {rebalance_spans} w JOIN {fetches} f
              ON f.run = w.run AND f.`group` = w.`group`
             AND f.virtual_ms BETWEEN w.start_ms AND w.end_ms
        ), still AS (
            SELECT run, `group`, number, max(at_ms - before_ms) AS stopped_ms
            FROM (
                SELECT *, lag(at_ms) OVER (PARTITION BY run, `group`, number ORDER BY at_ms)
                              AS before_ms
                FROM pulse WHERE at_ms IS NOT NULL
            )
            GROUP BY run, `group`, number
        )
        SELECT w.run, w.`group`, w.protocol, w.generation, w.cause, w.start_seq, w.start_ms,
               w.stable_ms, w.back_ms, w.end_ms - w.start_ms AS took_ms,
               coalesce(s.stopped_ms, 0) AS stopped_ms, w.restarts, w.members, w.partitions,
               w.moved
        FROM {rebalance_spans} w
        LEFT JOIN still s ON s.run = w.run AND s.`group` = w.`group` AND s.number = w.number
        ORDER BY w.run, w.`group`, w.start_seq
    """)


def _whole(inputs: Inputs) -> DataFrame:
    """Rebalances with their ends and assignments."""
    return inputs.sql("""
        WITH returned AS (
            SELECT m.run, m.`group`, m.number, m.member, m.virtual_ms AS assigned_ms,
                   min(f.virtual_ms) AS fetched_ms
            FROM (
                SELECT run, `group`, number, member, min(seq) AS seq,
                       min(virtual_ms) AS virtual_ms, min(next_seq) AS next_seq
                FROM {handed} GROUP BY run, `group`, number, member
            ) m
            LEFT JOIN {fetches} f
              ON f.run = m.run AND f.`group` = m.`group` AND f.member = m.member
             AND f.error IS NULL AND f.response_seq > m.seq
             AND (m.next_seq IS NULL OR f.response_seq < m.next_seq)
            GROUP BY m.run, m.`group`, m.number, m.member, m.virtual_ms
        ), back AS (
            SELECT run, `group`, number, max(coalesce(fetched_ms, assigned_ms)) AS back_ms
            FROM returned GROUP BY run, `group`, number
        ), moves AS (
            SELECT run, `group`, number, count(*) AS partitions,
                   count_if(NOT (former_member <=> member)) AS moved
            FROM {handed} GROUP BY run, `group`, number
        )
        SELECT s.*, b.back_ms, greatest(s.stable_ms, b.back_ms) AS end_ms,
               coalesce(m.partitions, 0) AS partitions, coalesce(m.moved, 0) AS moved
        FROM {spans} s
        LEFT JOIN back b ON b.run = s.run AND b.`group` = s.`group` AND b.number = s.number
        LEFT JOIN moves m ON m.run = s.run AND m.`group` = s.`group` AND m.number = s.number
    """)


def _spans(inputs: Inputs) -> DataFrame:
    """From the end of a stable state to the next stable state."""
    return inputs.sql(f"""
        WITH steps AS (
            SELECT *, sum(IF(former IN ('Stable', 'Empty') AND state NOT IN {STABLE}, 1, 0))
                          OVER (PARTITION BY run, `group` ORDER BY seq) AS number
            FROM {{groups}}
        ), spans AS (
            SELECT run, `group`, number, min(protocol) AS protocol, min(seq) AS start_seq,
                   min(virtual_ms) AS start_ms, min_by(reason, seq) AS cause,
                   min(IF(state IN {STABLE}, virtual_ms, NULL)) AS stable_ms,
                   min_by(generation, IF(state IN {STABLE}, seq, NULL)) AS generation,
                   min_by(members, IF(state IN {STABLE}, seq, NULL)) AS members,
                   greatest(count_if(state = 'PreparingRebalance') - 1, 0) AS restarts
            FROM steps WHERE number > 0
            GROUP BY run, `group`, number
        )
        SELECT *, lead(start_seq) OVER (PARTITION BY run, `group` ORDER BY number) AS next_seq
        FROM spans
    """)


def _handed(inputs: Inputs) -> DataFrame:
    """Assigned partitions in a rebalance, and their owners before."""
    return inputs.sql("""
        SELECT s.run, s.`group`, s.number, s.next_seq, a.member, a.seq, a.virtual_ms,
               a.former_member
        FROM {spans} s
        JOIN (
            SELECT *, lag(member) OVER (PARTITION BY k, `group` ORDER BY seq) AS former_member
            FROM {assignments}
        ) a
          ON a.run = s.run AND a.`group` = s.`group` AND a.seq >= s.start_seq
         AND (s.next_seq IS NULL OR a.seq < s.next_seq)
    """)


def ownership(inputs: Inputs) -> DataFrame:
    """The owner of each partition over time, until the next assignment or the end of the group.

    `to_ms` is null for owners at the end of the run.
    """
    return inputs.sql("""
        WITH given AS (
            SELECT *, lead(seq) OVER owners AS next_seq, lead(virtual_ms) OVER owners AS next_ms
            FROM {assignments}
            WINDOW owners AS (PARTITION BY k, `group` ORDER BY seq)
        ), ended AS (
            SELECT g.k, g.`group`, g.seq, min(e.virtual_ms) AS end_ms
            FROM given g JOIN {groups} e
              ON e.run = g.run AND e.`group` = g.`group` AND e.state IN ('Empty', 'Dead')
             AND e.seq > g.seq AND (g.next_seq IS NULL OR e.seq < g.next_seq)
            GROUP BY g.k, g.`group`, g.seq
        )
        SELECT g.run, g.`group`, g.topic, g.partition, g.member, g.client_id, g.generation,
               g.virtual_ms AS from_ms, coalesce(e.end_ms, g.next_ms) AS to_ms
        FROM given g
        LEFT JOIN ended e ON e.k = g.k AND e.`group` = g.`group` AND e.seq = g.seq
        ORDER BY g.run, g.`group`, g.topic, g.partition, from_ms
    """)


def rebalance_summary(inputs: Inputs) -> DataFrame:
    """For each group: the number of rebalances, their duration, and the time without a Fetch."""
    return inputs.sql(
        """
        SELECT run, `group`, count(*) AS rebalances, sum(took_ms) AS took_ms,
               max(took_ms) AS longest_ms, sum(stopped_ms) AS stopped_ms, sum(moved) AS moved,
               sort_array(collect_set(cause)) AS causes
        FROM {rebalances} GROUP BY run, `group` ORDER BY run, `group`
        """,
        rebalances=rebalances(inputs),
    )


if __name__ == "__main__":
    main(rebalances, ownership, rebalance_summary)
