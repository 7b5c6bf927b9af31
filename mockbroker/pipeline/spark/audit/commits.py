"""Commits of groups: `commit_regression`, `committed_not_read` and `zombie_commit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import COMMITS, UNATTRIBUTED
from mockbroker.pipeline.spark.audit.facts import findings, no_findings
from mockbroker.pipeline.spark.audit.index import first_missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

# The errors of a coordinator for a former member.
_REFUSALS = (
    "'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID', "
    "'FENCED_MEMBER_EPOCH', 'STALE_MEMBER_EPOCH'"
)


def _applied(inputs: Inputs) -> DataFrame:
    """Applied commits, each with the one before it on the same partition."""
    return inputs.sql("""
        SELECT *, lag(offset) OVER line AS before_offset, lag(seq) OVER line AS before_seq
        FROM {commits} WHERE applied
        WINDOW line AS (PARTITION BY k, `group` ORDER BY seq)
    """)


def commit_regression(inputs: Inputs) -> DataFrame:
    """Commits of a lower offset than the one before."""
    inputs.derive("applied", _applied, checkpoint=True)
    found = inputs.sql("""
        SELECT run, topic, topic_id, partition, offset, `group` AS subject, 'report' AS verdict,
               before_seq AS first_seq, seq AS last_seq,
               to_json(named_struct('before', before_offset, 'member', member)) AS details
        FROM {applied}
        WHERE offset < before_offset AND NOT coalesce(reset, false)
    """)
    return findings(found, "commit_regression", COMMITS)


def committed_not_read(inputs: Inputs) -> DataFrame:
    """Commits above the member's deliveries, with records between."""
    inputs.derive("applied", _applied, checkpoint=True)
    ranges = inputs.derive("unread_ranges", _unread_ranges, checkpoint=True)
    if not inputs.rows("unread_ranges"):
        return no_findings(inputs)
    missing = inputs.checkpoint(first_missing(inputs, ranges, "committed_not_read"), "unread")
    found = inputs.sql(
        f"""
        SELECT run, topic, topic_id, partition, offset, `group` AS subject, 'report' AS verdict,
               first_seq, last_seq, to_json(named_struct('read_up_to', a, 'committed', b)) details
        FROM {{missing}} WHERE NOT unattributed
        UNION ALL
        SELECT run, min(topic), topic_id, CAST(NULL AS int), CAST(NULL AS bigint),
               concat('{UNATTRIBUTED}', `group`), 'undecided', min(first_seq), max(last_seq),
               CAST(NULL AS string)
        FROM {{missing}} WHERE unattributed
        GROUP BY run, topic_id, `group`
        """,
        missing=missing,
    )
    return findings(found, "committed_not_read", COMMITS)


def _unread_ranges(inputs: Inputs) -> DataFrame:
    """Offsets that a member committed beyond its possible reach, and beyond its certain reach."""
    return inputs.sql("""
        WITH possible AS (
            SELECT a.run, a.k, a.topic, a.topic_id, a.partition, c.`group`, c.member,
                   a.response_seq, a.fetch_offset, a.next_offset
            FROM (
                SELECT *, explode(candidates) AS candidate FROM {readings}
                WHERE error IS NULL AND candidates IS NOT NULL
            ) a
            JOIN (SELECT DISTINCT k, `group`, member FROM {applied} WHERE member IS NOT NULL) c
              ON c.k = a.k AND c.member = a.candidate
             AND coalesce(a.`group`, c.`group`) = c.`group`
        ), steps AS (
            SELECT run, k, topic, topic_id, partition, `group`, member, response_seq AS seq,
                   next_offset AS reach, response_seq AS answer,
                   CAST(NULL AS bigint) AS possible_reach, CAST(NULL AS bigint) AS possible_from,
                   CAST(NULL AS bigint) AS possible_answer, CAST(NULL AS bigint) AS offset,
                   CAST(NULL AS bigint) AS before_offset
            FROM {readings}
            WHERE error IS NULL AND `group` IS NOT NULL AND member IS NOT NULL
            UNION ALL
            SELECT run, k, topic, topic_id, partition, `group`, member, response_seq, NULL, NULL,
                   next_offset, fetch_offset, response_seq, NULL, NULL
            FROM possible
            UNION ALL
            SELECT run, k, topic, topic_id, partition, `group`, member, seq, NULL, NULL, NULL,
                   NULL, NULL, offset, before_offset
            FROM {applied}
            WHERE member IS NOT NULL AND NOT coalesce(reset, false) AND offset IS NOT NULL
        ), reached AS (
            SELECT *, max(reach) OVER before AS reached, min(answer) OVER before AS first_answer,
                   max(possible_reach) OVER before AS possibly_reached,
                   min(possible_from) OVER before AS possibly_from,
                   min(possible_answer) OVER before AS first_possible
            FROM steps
            WINDOW before AS (
                PARTITION BY k, `group`, member ORDER BY seq, offset NULLS LAST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ), ranges AS (
            SELECT *, false AS unattributed, first_answer AS first_seq,
                   greatest(reached, before_offset, possibly_reached) AS a, offset AS b
            FROM reached WHERE first_answer IS NOT NULL
            UNION ALL
            SELECT *, true, least(first_answer, first_possible),
                   greatest(coalesce(reached, possibly_from), before_offset),
                   IF(first_answer IS NULL, offset,
                      least(offset, greatest(reached, before_offset, possibly_reached)))
            FROM reached WHERE first_possible IS NOT NULL
        )
        SELECT run, k, topic, topic_id, partition, `group`, unattributed, first_seq,
               seq AS last_seq, a, b, seq AS horizon, true AS committed,
               CAST(NULL AS bigint) AS answer
        FROM ranges WHERE offset IS NOT NULL AND a < b
    """)


def zombie_commit(inputs: Inputs) -> DataFrame:
    """Commits by members of an ended generation, accepted or refused."""
    found = inputs.sql(f"""
        WITH steps AS (
            SELECT run, broker, `group`, seq, 0 AS is_commit, generation, protocol, state,
                   CAST(NULL AS string) AS topic, CAST(NULL AS string) AS topic_id,
                   CAST(NULL AS int) AS partition, CAST(NULL AS bigint) AS offset
            FROM {{groups}}
            UNION ALL
            SELECT run, broker, `group`, seq, 1, generation, NULL, NULL, topic, topic_id,
                   partition, offset
            FROM {{commits}} WHERE applied AND generation IS NOT NULL
        ), known AS (
            SELECT *,
                   max_by(struct(protocol, generation, state), IF(is_commit = 0, seq, NULL))
                       OVER before AS latest
            FROM steps
            WINDOW before AS (
                PARTITION BY run, broker, `group` ORDER BY seq, is_commit DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ), accepted AS (
            SELECT * FROM known
            WHERE is_commit = 1 AND latest.protocol = 'classic' AND latest.state <> 'Dead'
              AND latest.generation > generation
        )
        SELECT a.run, a.topic, a.topic_id, a.partition, a.offset, a.`group` AS subject,
               'bug' AS verdict, min(g.seq) AS first_seq, a.seq AS last_seq,
               to_json(named_struct('generation', a.generation,
                                    'of_the_group', a.latest.generation)) AS details
        FROM accepted a
        JOIN {{groups}} g ON g.run = a.run AND g.`group` = a.`group`
            AND g.broker <=> a.broker AND g.generation > a.generation AND g.seq < a.seq
        GROUP BY a.run, a.topic, a.topic_id, a.partition, a.offset, a.`group`, a.seq,
                 a.generation, a.latest.generation
        UNION ALL
        SELECT run, topic, topic_id, partition, offset, `group`, 'report', seq, seq,
               to_json(named_struct('error', error, 'generation', generation))
        FROM {{commits}} WHERE error IN ({_REFUSALS})
    """)
    return findings(found, "zombie_commit", COMMITS)
