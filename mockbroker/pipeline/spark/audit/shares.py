"""Share groups (KIP-932): `delivered_above_limit`, `delivered_again`, `acquired_twice`,
`archived_unprocessed` and `passed_over`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import WIRE
from mockbroker.pipeline.spark.audit.facts import findings, no_findings
from mockbroker.pipeline.spark.audit.index import RANGE_BITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs

_STATE_TOPIC = "__share_group_state"

# Records that stay in the log: neither removed before an event, nor aborted or diverging.
_STANDING = """
        LEFT ANTI JOIN {removals} x
          ON x.k = g.k AND g.offset BETWEEN x.first_offset AND x.last_offset
         AND x.seq > g.append_seq AND x.seq < g.seq
        LEFT ANTI JOIN {diverging} v ON v.k = g.k AND v.append_seq = g.append_seq
        LEFT ANTI JOIN {aborted} t ON t.k = g.k AND t.append_seq = g.append_seq
"""


def _handled(inputs: Inputs) -> DataFrame:
    """The events of share groups, once for each offset.

    `limit_max` and `limit_min` are the highest and the lowest limit so far. `final` if an
    acknowledgement is written; `forced` if a rule or action takes the record from its member, or
    sets its delivery count.
    """
    return inputs.sql("""
        SELECT run, k, topic, topic_id, partition, seq, `group`, share_state, life, change, state,
               delivery_count, reason, cause, limit_max, limit_min,
               change IN ('accepted', 'rejected', 'gap') AS final,
               cause IS NOT NULL AND (
                   state = 'Available' AND change NOT IN ('released', 'session_ended')
                   OR change = 'counted'
               ) AS forced,
               explode(sequence(first_offset, last_offset)) AS offset
        FROM (
            SELECT *, max(delivery_limit) OVER so_far AS limit_max,
                   min(delivery_limit) OVER so_far AS limit_min
            FROM {share_records}
            WINDOW so_far AS (PARTITION BY k, `group` ORDER BY seq)
        )
    """)


def _events(inputs: Inputs) -> bool:
    """Derive the events of single offsets; False if there are none."""
    if not inputs.has("share_records"):
        return False
    inputs.derive("handled", _handled, checkpoint=True)
    return True


def delivered_above_limit(inputs: Inputs) -> DataFrame:
    """Records that were acquired more often than their group's limit allows."""
    if not _events(inputs):
        return no_findings(inputs)
    found = inputs.sql("""
        SELECT run, topic, topic_id, partition, offset, `group` AS subject,
               IF(excuse IS NULL, 'bug', 'report') AS verdict, first_seq, seq AS last_seq,
               excuse AS rule,
               to_json(named_struct('deliveries', greatest(delivery_count, deliveries),
                                    'limit', limit_max)) AS details
        FROM (
            SELECT *, count(*) OVER so_far AS deliveries, min(seq) OVER so_far AS first_seq
            FROM (
                SELECT *, coalesce(first_forced.cause, cause) AS excuse
                FROM (
                    SELECT *, min(IF(forced, struct(seq, cause), NULL)) OVER so_far AS first_forced
                    FROM {handled}
                    WINDOW so_far AS (PARTITION BY k, `group`, share_state, offset ORDER BY seq)
                )
            )
            WHERE change = 'acquired'
            WINDOW so_far AS (PARTITION BY k, `group`, life, offset ORDER BY seq)
        )
        WHERE greatest(delivery_count, deliveries) > limit_max
    """)
    return findings(found, "delivered_above_limit", WIRE)


def delivered_again(inputs: Inputs) -> DataFrame:
    """Records that were acquired after their acknowledgement was written."""
    if not _events(inputs):
        return no_findings(inputs)
    again = inputs.checkpoint(
        inputs.sql("""
            SELECT * FROM (
                SELECT *, max(IF(final, seq, NULL)) OVER former AS final_seq
                FROM {handled}
                WINDOW former AS (
                    PARTITION BY k, `group`, share_state, offset ORDER BY seq
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                )
            )
            WHERE change = 'acquired' AND final_seq IS NOT NULL
        """),
        "again",
    )
    if not inputs.rows("again"):
        return no_findings(inputs)
    found = inputs.sql(
        f"""
        WITH caused AS (
            SELECT g.k, g.`group`, g.offset, g.seq, min_by(h.cause, h.seq) AS cause
            FROM {{again}} g
            JOIN {{handled}} h
              ON h.k = g.k AND h.`group` = g.`group` AND h.share_state = g.share_state
             AND h.offset = g.offset AND h.cause IS NOT NULL
             AND h.seq > g.final_seq AND h.seq <= g.seq
            GROUP BY g.k, g.`group`, g.offset, g.seq
        ), forgotten AS (
            SELECT g.k, g.`group`, g.offset, g.seq,
                   min_by(coalesce(r.cause, r.reason), r.seq) AS cause
            FROM {{again}} g
            JOIN {{unwanted}} r
              ON r.run = g.run AND r.topic = '{_STATE_TOPIC}'
             AND r.seq > g.final_seq AND r.seq < g.seq
            GROUP BY g.k, g.`group`, g.offset, g.seq
        )
        SELECT run, topic, topic_id, partition, offset, `group` AS subject,
               IF(excuse IS NULL, 'bug', 'report') AS verdict, final_seq AS first_seq,
               seq AS last_seq, excuse AS rule
        FROM (
            SELECT g.*, coalesce(c.cause, f.cause) AS excuse
            FROM {{again}} g
            LEFT JOIN caused c
              ON c.k = g.k AND c.`group` = g.`group` AND c.offset = g.offset AND c.seq = g.seq
            LEFT JOIN forgotten f
              ON f.k = g.k AND f.`group` = g.`group` AND f.offset = g.offset AND f.seq = g.seq
        )
        """,
        again=again,
    )
    return findings(found, "delivered_again", WIRE)


def acquired_twice(inputs: Inputs) -> DataFrame:
    """Records that were acquired while a member had them."""
    if not _events(inputs):
        return no_findings(inputs)
    twice = inputs.checkpoint(
        inputs.sql("""
            SELECT * FROM (
                SELECT *, max_by(struct(seq, state), IF(forced, NULL, seq)) OVER former AS held
                FROM {handled} WHERE life IS NOT NULL
                WINDOW former AS (
                    PARTITION BY k, `group`, life, offset ORDER BY seq
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                )
            )
            WHERE change = 'acquired' AND held.state = 'Acquired'
        """),
        "twice",
    )
    if not inputs.rows("twice"):
        return no_findings(inputs)
    found = inputs.sql(
        """
        SELECT run, topic, topic_id, partition, offset, `group` AS subject,
               IF(excuse IS NULL, 'bug', 'report') AS verdict, former_seq AS first_seq,
               seq AS last_seq, excuse AS rule
        FROM (
            SELECT g.run, g.topic, g.topic_id, g.partition, g.offset, g.`group`, g.seq,
                   g.held.seq AS former_seq,
                   coalesce(min_by(h.cause, h.seq), first(g.cause)) AS excuse
            FROM {twice} g
            LEFT JOIN {handled} h
              ON h.k = g.k AND h.`group` = g.`group` AND h.life = g.life AND h.offset = g.offset
             AND h.forced AND h.seq > g.held.seq AND h.seq < g.seq
            GROUP BY g.run, g.topic, g.topic_id, g.partition, g.offset, g.`group`, g.seq,
                     g.held.seq
        )
        """,
        twice=twice,
    )
    return findings(found, "acquired_twice", WIRE)


def archived_unprocessed(inputs: Inputs) -> DataFrame:
    """Records that were archived, and that no member accepted or rejected."""
    if not _events(inputs):
        return no_findings(inputs)
    lost = inputs.checkpoint(
        inputs.sql("""
            WITH archived AS (
                SELECT *, row_number() OVER (
                    PARTITION BY k, `group`, offset ORDER BY seq
                ) AS number
                FROM {handled} WHERE state = 'Archived' AND change <> 'writing'
            )
            SELECT u.*, r.append_seq
            FROM archived u
            JOIN {records} r ON r.k = u.k AND r.offset = u.offset AND r.append_seq < u.seq
            LEFT ANTI JOIN {handled} p
              ON p.k = u.k AND p.`group` = u.`group` AND p.offset = u.offset
             AND (p.state = 'Acknowledged' OR p.reason = 'rejected')
            WHERE u.number = 1
        """),
        "archived",
    )
    if not inputs.rows("archived"):
        return no_findings(inputs)
    found = inputs.sql(
        f"""
        SELECT g.run, g.topic, g.topic_id, g.partition, g.offset, g.`group` AS subject,
               IF(g.cause IS NOT NULL OR coalesce(g.reason, '') = 'gap'
                  OR (coalesce(g.reason, '') = 'delivery_limit'
                      AND g.delivery_count >= g.limit_min),
                  'report', 'bug') AS verdict,
               g.append_seq AS first_seq, g.seq AS last_seq, g.cause AS rule,
               to_json(named_struct('reason', g.reason,
                                    'deliveries', g.delivery_count)) AS details
        FROM {{lost}} g
        {_STANDING}
        """,
        lost=lost,
    )
    return findings(found, "archived_unprocessed", WIRE)


def _moves(inputs: Inputs) -> DataFrame:
    """The moves of start offsets, once for each bucket of offsets that they pass."""
    return inputs.sql(f"""
        SELECT m.*, explode(sequence(shiftright(greatest(m.a, e.lo), {RANGE_BITS}),
                                     shiftright(least(m.b - 1, e.hi), {RANGE_BITS}))) AS bucket
        FROM (
            SELECT run, k, topic, topic_id, partition, `group`, share_state, seq, cause,
                   IF(change = 'moved', former_offset, highest) AS a, offset AS b
            FROM (
                SELECT *, max(offset) OVER former AS highest
                FROM {{share_starts}}
                WINDOW former AS (
                    PARTITION BY k, `group`, share_state ORDER BY seq
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                )
            )
            WHERE change IN ('moved', 'loaded')
        ) m
        JOIN {{extents}} e ON e.k = m.k
        WHERE greatest(m.a, e.lo) <= least(m.b - 1, e.hi) AND m.a < m.b
    """)


def passed_over(inputs: Inputs) -> DataFrame:
    """Records below the start offset that are neither acknowledged nor archived."""
    if not inputs.has("share_starts"):
        return no_findings(inputs)
    inputs.derive("handled", _handled, checkpoint=True)
    moves = inputs.checkpoint(_moves(inputs), "moves")
    if not inputs.rows("moves"):
        return no_findings(inputs)
    passed = inputs.sql(
        f"""
        SELECT m.run, m.k, m.topic, m.topic_id, m.partition, m.`group`, m.share_state, m.seq,
               m.cause, r.offset, r.append_seq
        FROM {{moves}} m
        JOIN {{records}} r
          ON r.k = m.k AND shiftright(r.offset, {RANGE_BITS}) = m.bucket
         AND r.offset >= m.a AND r.offset < m.b AND r.append_seq < m.seq
        LEFT ANTI JOIN {{handled}} h
          ON h.k = m.k AND h.`group` = m.`group` AND h.share_state = m.share_state
         AND h.offset = r.offset AND h.state IN ('Acknowledged', 'Archived') AND h.seq < m.seq
        """,
        moves=moves,
    )
    passed = inputs.checkpoint(passed, "passed")
    if not inputs.rows("passed"):
        return no_findings(inputs)
    found = inputs.sql(
        f"""
        SELECT g.run, g.topic, g.topic_id, g.partition, g.offset, g.`group` AS subject,
               IF(g.cause IS NULL, 'bug', 'report') AS verdict, g.append_seq AS first_seq,
               g.seq AS last_seq, g.cause AS rule
        FROM {{passed}} g
        {_STANDING}
        """,
        passed=passed,
    )
    return findings(found, "passed_over", WIRE)
