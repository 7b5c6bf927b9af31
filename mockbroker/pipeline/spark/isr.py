"""Replication: under-replicated partitions, elections, and the balance of leaders.

A topic that is deleted and created again is another one: it has another id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

_NODES = "CAST(filter(split({0}, ','), n -> n <> '') AS array<int>)"


def _stands(inputs: Inputs) -> DataFrame:
    """Leader, ISR and replicas of each partition after each change."""
    isr, replicas = _NODES.format("isr"), _NODES.format("replicas")
    former = _NODES.format("former_isr")
    return inputs.sql(f"""
        WITH reported AS (
            SELECT run, seq, virtual_ms, topic, topic_id, partition, reason,
                   IF(change = 'LeaderChanged', leader, NULL) AS leader,
                   IF(change = 'IsrChanged', {former}, NULL) AS former_isr,
                   IF(change IN ('IsrChanged', 'LeaderChanged'), {isr}, NULL) AS isr,
                   IF(change = 'ReplicasChanged', {replicas}, NULL) AS replicas
            FROM {{cluster}}
            WHERE change IN ('LeaderChanged', 'IsrChanged', 'ReplicasChanged')
            UNION ALL
            SELECT run, seq, virtual_ms, topic, topic_id, number, 'created',
                   nodes[0], CAST(NULL AS array<int>), nodes, nodes
            FROM (
                SELECT run, seq, virtual_ms, topic, topic_id, posexplode(from_json(
                    details, 'assignment array<array<int>>').assignment) AS (number, nodes)
                FROM {{cluster}}
                WHERE change = 'TopicsChanged' AND get_json_object(details, '$.change') = 'created'
            )
        )
        SELECT run, topic, topic_id, partition, seq, virtual_ms, reason, former_isr,
               last_value(leader) IGNORE NULLS OVER so_far AS leader,
               last_value(isr) IGNORE NULLS OVER so_far AS isr,
               last_value(replicas) IGNORE NULLS OVER so_far AS replicas
        FROM reported
        WINDOW so_far AS (PARTITION BY run, topic, topic_id, partition ORDER BY seq
                          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    """)


def _deleted(inputs: Inputs) -> DataFrame:
    """The deletions of topics."""
    return inputs.sql("""
        SELECT run, topic_id, seq, virtual_ms FROM {cluster}
        WHERE change = 'TopicsChanged' AND get_json_object(details, '$.change') = 'deleted'
    """)


def under_replicated(inputs: Inputs) -> DataFrame:
    """A row for each time that a replica was out of its partition's ISR.

    `to_ms` is null if it still was at the end of the run; a deleted topic has no replicas. Without
    eligible leader replicas (KIP-966) the last offline replica stays in the ISR, as in Kafka, and
    appears among the elections.
    """
    inputs.derive("stands", _stands)
    inputs.derive("deleted", _deleted)
    return inputs.sql("""
        WITH seen AS (
            SELECT run, topic, topic_id, partition, seq, virtual_ms, reason, isr,
                   explode(coalesce(replicas, array_union(former_isr, isr))) AS broker
            FROM {stands} WHERE isr IS NOT NULL
        ), turns AS (
            SELECT *, lag(is_out) OVER line AS was_out
            FROM (SELECT *, NOT array_contains(isr, broker) AS is_out FROM seen)
            WINDOW line AS (PARTITION BY run, topic, topic_id, partition, broker ORDER BY seq)
        ), bounds AS (
            SELECT *, lead(struct(virtual_ms, seq)) OVER line AS next
            FROM turns WHERE is_out <> coalesce(was_out, false)
            WINDOW line AS (PARTITION BY run, topic, topic_id, partition, broker ORDER BY seq)
        ), spans AS (
            SELECT b.*, coalesce(next.virtual_ms, d.virtual_ms) AS to_ms,
                   coalesce(next.seq, d.seq) AS to_seq
            FROM bounds b LEFT JOIN {deleted} d ON d.run = b.run AND d.topic_id = b.topic_id
        )
        SELECT run, topic, partition, broker, virtual_ms AS from_ms, to_ms,
               to_ms - virtual_ms AS lasted_ms, size(isr) AS isr_size, reason,
               seq AS first_seq, to_seq AS last_seq
        FROM spans WHERE is_out
        ORDER BY run, from_ms, topic, partition, broker
    """)


def elections(inputs: Inputs) -> DataFrame:
    """A row for each election; `outcome` is preferred, other, unclean, same, or failed."""
    inputs.derive("stands", _stands)
    return inputs.sql("""
        SELECT c.run, c.seq, c.virtual_ms, c.topic, c.partition, c.former_leader, c.leader,
               c.leader_epoch, c.reason,
               CASE WHEN c.change = 'PreferredElectionFailed' OR c.leader < 0 THEN 'failed'
                    WHEN c.unclean THEN 'unclean'
                    WHEN c.leader = c.former_leader THEN 'same'
                    WHEN c.leader = s.replicas[0] THEN 'preferred'
                    ELSE 'other' END AS outcome
        FROM {cluster} c
        LEFT JOIN (SELECT DISTINCT run, topic, partition, seq, replicas FROM {stands}) s
          ON s.run = c.run AND s.topic = c.topic AND s.partition = c.partition AND s.seq = c.seq
        WHERE c.change IN ('LeaderChanged', 'PreferredElectionFailed')
        ORDER BY c.run, c.seq, c.topic, c.partition
    """)


def imbalance(inputs: Inputs) -> DataFrame:
    """The share of partitions without their preferred leader, after each change of it.

    A row with `broker` counts the partitions that prefer this broker, as Kafka's
    `leader.imbalance.per.broker.percentage` does; one without a broker counts all.
    """
    inputs.derive("stands", _stands)
    inputs.derive("deleted", _deleted)
    return inputs.sql("""
        WITH flags AS (
            SELECT run, topic, topic_id, partition, seq, virtual_ms, replicas[0] AS preferred,
                   IF(leader = replicas[0], 0, 1) AS off
            FROM {stands} WHERE replicas IS NOT NULL
        ), steps AS (
            SELECT *, lag(preferred) OVER line AS former, lag(off) OVER line AS was_off
            FROM flags
            WINDOW line AS (PARTITION BY run, topic, topic_id, partition ORDER BY seq)
        ), last AS (
            SELECT run, topic_id, max_by(struct(preferred, off), seq) AS stood
            FROM flags GROUP BY run, topic, topic_id, partition
        ), changes AS (
            SELECT run, seq, virtual_ms, preferred AS broker, off, 1 AS counted FROM steps
            UNION ALL
            SELECT run, seq, virtual_ms, former, -was_off, -1 FROM steps WHERE former IS NOT NULL
            UNION ALL
            SELECT d.run, d.seq, d.virtual_ms, stood.preferred, -stood.off, -1
            FROM last l JOIN {deleted} d ON d.run = l.run AND d.topic_id = l.topic_id
        ), moments AS (
            SELECT run, broker, virtual_ms, sum(off) AS off, sum(counted) AS counted
            FROM changes GROUP BY run, broker, virtual_ms
            UNION ALL
            SELECT run, NULL, virtual_ms, sum(off), sum(counted)
            FROM changes GROUP BY run, virtual_ms
        )
        SELECT run, broker, virtual_ms, imbalanced, partitions,
               round(imbalanced / partitions, 4) AS ratio
        FROM (
            SELECT run, broker, virtual_ms, sum(off) OVER so_far AS imbalanced,
                   sum(counted) OVER so_far AS partitions
            FROM moments
            WINDOW so_far AS (PARTITION BY run, broker ORDER BY virtual_ms)
        )
        WHERE partitions > 0
        ORDER BY run, broker NULLS FIRST, virtual_ms
    """)


def replication_summary(inputs: Inputs) -> DataFrame:
    """For each run: all, failed and unclean elections, and the time of replicas out of ISRs."""
    return inputs.sql(
        """
        WITH held AS (
            SELECT run, count(*) AS elections, count_if(outcome = 'failed') AS failed,
                   count_if(outcome = 'unclean') AS unclean
            FROM {elections} GROUP BY run
        ), behind AS (
            SELECT run, count(*) AS times_out, max(lasted_ms) AS longest_out_ms,
                   count_if(to_ms IS NULL) AS still_out
            FROM {under_replicated} GROUP BY run
        )
        SELECT coalesce(h.run, b.run) AS run, coalesce(h.elections, 0) AS elections,
               coalesce(h.failed, 0) AS failed, coalesce(h.unclean, 0) AS unclean,
               coalesce(b.times_out, 0) AS times_out, b.longest_out_ms,
               coalesce(b.still_out, 0) AS still_out
        FROM held h FULL JOIN behind b ON b.run = h.run
        ORDER BY run
        """,
        elections=elections(inputs),
        under_replicated=under_replicated(inputs),
    )


if __name__ == "__main__":
    main(under_replicated, elections, imbalance, replication_summary)
