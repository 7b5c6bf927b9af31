"""Commits of groups: `commit_regression`, `committed_not_read` and `zombie_commit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import COMMITS
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
    found = first_missing(inputs, ranges, "committed_not_read")
    found = found.selectExpr("*", "to_json(named_struct('read_up_to', a, 'committed', b)) details")
    return findings(found, "committed_not_read", COMMITS)


def _unread_ranges(inputs: Inputs) -> DataFrame:
    return inputs.sql("""
        WITH steps AS (
            SELECT run, k, topic, topic_id, partition, `group`, member, response_seq AS seq,
                   next_offset AS reach, response_seq AS answer, CAST(NULL AS bigint) AS offset,
                   CAST(NULL AS bigint) AS before_offset
            FROM {readings}
            WHERE error IS NULL AND `group` IS NOT NULL AND member IS NOT NULL
            UNION ALL
            SELECT run, k, topic, topic_id, partition, `group`, member, seq, NULL, NULL, offset,
                   before_offset
            FROM {applied}
            WHERE member IS NOT NULL AND NOT coalesce(reset, false) AND offset IS NOT NULL
        ), reached AS (
            SELECT *, max(reach) OVER before AS reached, min(answer) OVER before AS first_answer
            FROM steps
            WINDOW before AS (
                PARTITION BY k, `group`, member ORDER BY seq, offset NULLS LAST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        )
        SELECT run, k, topic, topic_id, partition, `group` AS subject, 'report' AS verdict,
               first_answer AS first_seq, seq AS last_seq,
               greatest(reached, before_offset) AS a, offset AS b, seq AS horizon,
               true AS committed, CAST(NULL AS bigint) AS answer
        FROM reached
        WHERE offset > greatest(reached, before_offset) AND first_answer IS NOT NULL
    """)


def zombie_commit(inputs: Inputs) -> DataFrame:
    """Commits by members of an ended generation, accepted or refused."""
    found = inputs.sql(f"""
        WITH steps AS (
            SELECT run, `group`, seq, 0 AS is_commit, generation, protocol,
                   CAST(NULL AS string) AS topic, CAST(NULL AS string) AS topic_id,
                   CAST(NULL AS int) AS partition, CAST(NULL AS bigint) AS offset
            FROM {{groups}}
            UNION ALL
            SELECT run, `group`, seq, 1, generation, NULL, topic, topic_id, partition, offset
            FROM {{commits}} WHERE applied AND generation IS NOT NULL
        ), known AS (
            SELECT *,
                   max_by(struct(protocol, generation), IF(is_commit = 0, seq, NULL))
                       OVER before AS latest
            FROM steps
            WINDOW before AS (
                PARTITION BY run, `group` ORDER BY seq, is_commit DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ), accepted AS (
            SELECT * FROM known
            WHERE is_commit = 1 AND latest.protocol = 'classic' AND latest.generation > generation
        )
        SELECT a.run, a.topic, a.topic_id, a.partition, a.offset, a.`group` AS subject,
               'bug' AS verdict, min(g.seq) AS first_seq, a.seq AS last_seq,
               to_json(named_struct('generation', a.generation,
                                    'of_the_group', a.latest.generation)) AS details
        FROM accepted a
        JOIN {{groups}} g ON g.run = a.run AND g.`group` = a.`group`
            AND g.generation > a.generation AND g.seq < a.seq
        GROUP BY a.run, a.topic, a.topic_id, a.partition, a.offset, a.`group`, a.seq,
                 a.generation, a.latest.generation
        UNION ALL
        SELECT run, topic, topic_id, partition, offset, `group`, 'report', seq, seq,
               to_json(named_struct('error', error, 'generation', generation))
        FROM {{commits}} WHERE error IN ({_REFUSALS})
    """)
    return findings(found, "zombie_commit", COMMITS)
