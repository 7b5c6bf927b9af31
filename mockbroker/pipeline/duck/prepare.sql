-- Tables for several rules, besides those of a run (views of their names). `k` is a partition: run,
-- topic id and number. Large tables have only k, without names.

CREATE TEMP TABLE places AS
SELECT CAST(row_number() OVER (ORDER BY run, topic_id, "partition") AS INTEGER) AS k,
       run, topic_id, "partition", any_value(topic) AS topic
FROM (
    SELECT run, topic, topic_id, "partition" FROM records
    UNION ALL SELECT run, topic, topic_id, "partition" FROM batches
    UNION ALL SELECT run, topic, topic_id, "partition" FROM fetches
    UNION ALL SELECT run, topic, topic_id, "partition" FROM commits
    UNION ALL SELECT run, topic, topic_id, "partition" FROM markers
    UNION ALL SELECT run, topic, topic_id, "partition" FROM removals
    UNION ALL SELECT run, topic, topic_id, "partition" FROM share_records
    UNION ALL SELECT run, topic, topic_id, "partition" FROM share_starts
)
GROUP BY run, topic_id, "partition";

CREATE TEMP TABLE stored AS
SELECT k, append_seq, "offset", value_hash
FROM records JOIN places USING (run, topic_id, "partition");

CREATE TEMP TABLE brought AS
SELECT k, response_seq, "position", "offset", value_hash
FROM deliveries JOIN places USING (run, topic_id, "partition");

-- The extents of partitions: a removal of all offsets is limited to them.
CREATE TEMP TABLE extents AS
SELECT k, min("offset") AS first_offset, max("offset") AS last_offset FROM stored GROUP BY k;

-- Topic names that the operations of applications can be compared with.
CREATE TEMP TABLE ambiguous AS
SELECT run, topic FROM records GROUP BY run, topic HAVING min(topic_id) <> max(topic_id);

-- Produced --------------------------------------------------------------------------------------

CREATE TEMP TABLE sent AS
SELECT k, b.* FROM batches AS b JOIN places USING (run, topic_id, "partition");

CREATE TEMP TABLE marked AS
SELECT k, m.run, m.seq, m.leader_epoch, m."offset", m.transaction, m.committed
FROM markers AS m JOIN places USING (run, topic_id, "partition");

-- Batches whose records are aborted.
CREATE TEMP TABLE aborted AS
SELECT DISTINCT k, append_seq
FROM sent JOIN marked USING (k, transaction)
WHERE append_seq IS NOT NULL AND NOT committed;

-- Batches that a later leader did not have: it has written at their offsets, or below.
CREATE TEMP TABLE diverging AS
SELECT DISTINCT s.k, s.append_seq
FROM sent AS s
JOIN (
    SELECT k, leader_epoch, min("offset") AS first_offset
    FROM (
        SELECT k, leader_epoch, base_offset AS "offset" FROM sent
        UNION ALL
        SELECT k, leader_epoch, "offset" FROM marked
    )
    WHERE leader_epoch IS NOT NULL
    GROUP BY k, leader_epoch
) AS e ON e.k = s.k AND e.leader_epoch > s.leader_epoch AND e.first_offset <= s.base_offset
WHERE s.append_seq IS NOT NULL;

-- Records that are neither aborted nor only a deposed leader's.
CREATE TEMP VIEW lasting AS
FROM stored ANTI JOIN aborted USING (k, append_seq) ANTI JOIN diverging USING (k, append_seq);

-- The acknowledged offsets of an append: by its own answer, or by that to a retry, which found the
-- last append before it. They are promised with acks=all.
CREATE TEMP TABLE acknowledged AS
SELECT k, append_seq, base_offset AS first_offset, last_offset,
       acks = -1 AS promised, append_seq AS since_seq
FROM sent WHERE acknowledged AND append_seq IS NOT NULL
UNION
SELECT a.k, a.append_seq, r.base_offset, r.last_offset, r.acks = -1, r.seq
FROM sent AS a JOIN sent AS r USING (k, producer_id, producer_epoch, base_sequence)
WHERE a.append_seq IS NOT NULL AND r.append_seq IS NULL AND r.acknowledged
  AND a.append_seq < r.seq
QUALIFY a.append_seq = max(a.append_seq) OVER (
    PARTITION BY a.k, r.seq, a.producer_id, a.producer_epoch, a.base_sequence
);

-- Removed ---------------------------------------------------------------------------------------

CREATE TEMP TABLE gone AS
SELECT k, seq, reason IN ('retention', 'compaction', 'delete_records', 'topic_deleted') AS wanted,
       cause,
       greatest(r.first_offset, e.first_offset) AS first_offset,
       least(r.last_offset, e.last_offset) AS last_offset
FROM removals AS r JOIN places USING (run, topic_id, "partition") JOIN extents AS e USING (k);

CREATE TEMP TABLE deleted AS
SELECT DISTINCT k FROM removals JOIN places USING (run, topic_id, "partition")
WHERE reason = 'topic_deleted';

-- Removals, once for each 1,024 offsets in them, so that records are joined by equality.
CREATE TEMP TABLE gone_near AS
SELECT k, bucket, seq, wanted, cause, first_offset, last_offset
FROM gone, unnest(generate_series(first_offset // 1024, last_offset // 1024)) AS b(bucket)
WHERE first_offset <= last_offset;

-- Whether a record was removed between its append and an entry. Arguments need the name of their
-- table: a bare `k` would be that of gone_near.
CREATE TEMP MACRO was_removed(partition_k, record_offset, appended_seq, at_seq) AS EXISTS (
    SELECT 1 FROM gone_near AS g
    WHERE g.k = partition_k AND g.bucket = record_offset // 1024
      AND record_offset BETWEEN g.first_offset AND g.last_offset
      AND g.seq > appended_seq AND g.seq < at_seq
);

-- Removed records, with their first unwanted removal.
CREATE TEMP TABLE thrown AS
SELECT k, append_seq, "offset", min(seq) AS seq,
       nullif(min_by(coalesce(cause, ''), seq), '') AS cause
FROM stored AS s JOIN gone_near AS g USING (k)
WHERE NOT g.wanted AND g.bucket = s."offset" // 1024
  AND s."offset" BETWEEN g.first_offset AND g.last_offset AND g.seq > s.append_seq
GROUP BY k, append_seq, "offset";

-- Batches whose transaction is open again, because all its markers were thrown out, and since when.
CREATE TEMP TABLE reopened AS
SELECT s.k, s.append_seq, d.since_seq
FROM sent AS s JOIN (
    SELECT k, transaction, max(thrown_seq) AS since_seq
    FROM (
        SELECT m.k, m.transaction, m.seq, min(r.seq) AS thrown_seq
        FROM marked AS m LEFT JOIN (
            SELECT k, seq, r.first_offset, r.last_offset
            FROM removals AS r JOIN places USING (run, topic_id, "partition")
            WHERE coalesce(reason, '')
                  NOT IN ('retention', 'compaction', 'delete_records', 'topic_deleted')
        ) AS r ON r.k = m.k AND m."offset" BETWEEN r.first_offset AND r.last_offset
              AND r.seq > m.seq
        GROUP BY m.k, m.transaction, m.seq
    )
    GROUP BY k, transaction
    HAVING count(*) = count(thrown_seq)
) AS d USING (k, transaction)
WHERE s.append_seq IS NOT NULL;

-- Removed or diverging records with an accepted reason, each with the reason.
CREATE TEMP TABLE excused AS
SELECT * FROM (
    SELECT l.k, l.append_seq, l."offset",
           CASE WHEN l.cause IS NOT NULL THEN l.cause
                WHEN u.leader_epoch > b.leader_epoch THEN 'unclean_election'
                WHEN NOT (
                    SELECT bool_or(a.promised) FROM acknowledged AS a
                    WHERE a.k = l.k AND a.append_seq = l.append_seq
                      AND l."offset" BETWEEN a.first_offset AND a.last_offset
                ) THEN 'acks=1'
           END AS excuse
    FROM (
        SELECT k, append_seq, "offset", any_value(cause) AS cause
        FROM (
            SELECT k, append_seq, "offset", cause FROM thrown
            UNION ALL
            SELECT k, append_seq, "offset", NULL
            FROM stored SEMI JOIN diverging USING (k, append_seq)
        )
        GROUP BY ALL
    ) AS l
    JOIN sent AS b ON b.k = l.k AND b.append_seq = l.append_seq
    LEFT JOIN (
        SELECT k, max(leader_epoch) AS leader_epoch
        FROM cluster JOIN places USING (run, topic_id, "partition")
        WHERE unclean
        GROUP BY k
    ) AS u ON u.k = l.k
)
WHERE excuse IS NOT NULL;

-- Appended batches of producers with an id that do not diverge, and whose first record was not removed.
CREATE TEMP TABLE sequenced AS
SELECT s.*
FROM sent AS s ANTI JOIN diverging USING (k, append_seq)
WHERE s.append_seq IS NOT NULL AND s.producer_id IS NOT NULL AND s.base_sequence >= 0
  AND NOT EXISTS (
    SELECT 1 FROM thrown AS t
    WHERE t.k = s.k AND t.append_seq = s.append_seq AND t."offset" = s.base_offset
  );

-- Producers that a partition forgot, see `producer.id.expiration.ms`.
CREATE TEMP TABLE forgotten AS
SELECT k, e.producer_id, e.seq
FROM expirations AS e JOIN places USING (run, topic_id, "partition");

-- Answers ---------------------------------------------------------------------------------------

-- A partition of an answer, and its deliveries, if it has any. `straight`: consecutive offsets.
CREATE TEMP TABLE answers AS
SELECT f.k, f.run, f.response_seq, f.connection, f."group", f.member, f.candidates, f.read_span,
       f.start,
       f.isolation_level = 1 AS committed_only, f.fetch_offset, f.next_offset,
       f.last_stable_offset, f.error,
       d.lowest, d.highest, d.straight
FROM (SELECT k, fetches.* FROM fetches JOIN places USING (run, topic_id, "partition")) AS f
LEFT JOIN (
    SELECT k, response_seq, min("offset") AS lowest, max("offset") AS highest,
           min("offset" - "position") = max("offset" - "position") AS straight
    FROM brought GROUP BY k, response_seq
) AS d USING (k, response_seq);

-- The points where the next offset of an answer is not consecutive.
CREATE TEMP TABLE leaps AS
SELECT * FROM (
    SELECT k, response_seq, "offset",
           lag("offset") OVER (PARTITION BY k, response_seq ORDER BY "position") AS former
    FROM brought SEMI JOIN (SELECT k, response_seq FROM answers WHERE NOT straight)
         USING (k, response_seq)
)
WHERE "offset" <> former + 1;

-- Pairs of successive answers, for the rules about the offsets between them.
CREATE TEMP TABLE pairs AS
SELECT k, run, connection, response_seq, committed_only, fetch_offset, lowest,
       coalesce(start = 'jump', FALSE) AS jumped,
       CASE WHEN start = 'jump' THEN seq_before ELSE seq_in_span END AS former_seq,
       CASE WHEN start = 'jump' THEN next_before ELSE next_in_span END AS former_next
FROM (
    SELECT *,
           lag(response_seq) OVER span AS seq_in_span,
           lag(next_offset) OVER span AS next_in_span,
           lag(response_seq) OVER line AS seq_before,
           lag(next_offset) OVER line AS next_before
    FROM answers WHERE error IS NULL
    WINDOW span AS (PARTITION BY k, read_span ORDER BY response_seq),
           line AS (PARTITION BY k, connection ORDER BY response_seq)
);

-- Commits -----------------------------------------------------------------------------------------

-- Applied commits, each with the group's committed offset before it.
CREATE TEMP TABLE applied AS
SELECT k, c.run, c.seq, c.broker, c."group", c.member, c.generation, c."offset",
       coalesce(c.reset, FALSE) AS reset,
       lag(c.seq) OVER former AS former_seq, lag(c."offset") OVER former AS former_offset
FROM commits AS c JOIN places USING (run, topic_id, "partition")
WHERE c.applied
WINDOW former AS (PARTITION BY k, c."group" ORDER BY c.seq);

-- Ranges of offsets in which no record may be missing ---------------------------------------------

-- Answers that a member may have had: see `candidates`.
CREATE TEMP TABLE possible AS
SELECT a.k, c."group", c.member, a.response_seq, a.fetch_offset, a.next_offset
FROM (
    SELECT k, "group", unnest(candidates) AS member, response_seq, fetch_offset, next_offset
    FROM answers WHERE error IS NULL
) AS a
JOIN (SELECT DISTINCT k, "group", member FROM applied WHERE member IS NOT NULL) AS c
  ON c.k = a.k AND c.member = a.member AND coalesce(a."group", c."group") = c."group";

-- How far a member had read when it committed, and how far it may have.
CREATE TEMP TABLE reaches AS
SELECT * FROM (
    SELECT k, seq, "group", "offset",
           max(next_offset) OVER so_far AS next_offset, min(response_seq) OVER so_far AS first_seq,
           max(possible_next) OVER so_far AS possible_next,
           min(possible_from) OVER so_far AS possible_from,
           min(possible_seq) OVER so_far AS possible_seq,
           former_offset, reset
    FROM (
        SELECT k, "group", member, response_seq AS seq, next_offset, response_seq
        FROM answers WHERE error IS NULL
        UNION ALL BY NAME
        SELECT k, "group", member, response_seq AS seq, next_offset AS possible_next,
               fetch_offset AS possible_from, response_seq AS possible_seq
        FROM possible
        UNION ALL BY NAME
        SELECT k, "group", member, seq, "offset", former_offset, reset FROM applied
    )
    WHERE "group" IS NOT NULL AND member IS NOT NULL
    WINDOW so_far AS (PARTITION BY k, "group", member ORDER BY seq)
)
WHERE "offset" IS NOT NULL AND NOT reset;

-- `at_seq`: the answer or commit; only records appended before it can be missing.
CREATE TEMP TABLE ranges AS
SELECT row_number() OVER () AS n, *
FROM (
    -- Before the first record of an answer, behind its last, and between two of them.
    SELECT 'answer' AS what, k, response_seq AS at_seq, NULL AS first_seq, NULL AS "group",
           committed_only AS without_aborted,
           fetch_offset AS first_offset, least(coalesce(lowest, next_offset), next_offset) AS end_offset
    FROM answers WHERE error IS NULL
    UNION ALL
    SELECT 'answer', k, response_seq, NULL, NULL, committed_only,
           greatest(highest + 1, fetch_offset), next_offset
    FROM answers WHERE error IS NULL AND highest IS NOT NULL
    UNION ALL
    SELECT 'answer', k, response_seq, NULL, NULL, committed_only,
           greatest(below + 1, fetch_offset), least("offset", next_offset)
    FROM answers JOIN (
        SELECT k, response_seq, former AS below, "offset" FROM leaps
        ANTI JOIN (SELECT k, response_seq FROM leaps WHERE "offset" <= former)
             USING (k, response_seq)
        UNION ALL
        -- The deliveries of an answer with decreasing offsets are sorted first.
        SELECT k, response_seq,
               lag("offset") OVER (PARTITION BY k, response_seq ORDER BY "offset"), "offset"
        FROM brought SEMI JOIN (SELECT k, response_seq FROM leaps WHERE "offset" <= former)
             USING (k, response_seq)
    ) USING (k, response_seq)
    WHERE error IS NULL AND below IS NOT NULL
    UNION ALL
    SELECT 'pair', k, response_seq, former_seq, NULL, committed_only, former_next, fetch_offset
    FROM pairs WHERE former_next IS NOT NULL
    UNION ALL
    SELECT 'commit', k, seq, first_seq, "group", TRUE,
           greatest(next_offset, former_offset, possible_next), "offset"
    FROM reaches WHERE next_offset IS NOT NULL
    UNION ALL
    SELECT 'unattributed', k, seq, least(first_seq, possible_seq), "group", TRUE,
           greatest(coalesce(next_offset, possible_from), former_offset),
           CASE WHEN next_offset IS NULL THEN "offset"
                ELSE least("offset", greatest(next_offset, former_offset, possible_next)) END
    FROM reaches WHERE possible_next IS NOT NULL
)
WHERE first_offset < end_offset;

-- The records that are in such ranges.
CREATE TEMP TABLE inside AS
SELECT r.n, r.k, r.at_seq, s.append_seq, s."offset"
FROM (SELECT * FROM stored ANTI JOIN diverging USING (k, append_seq)) AS s
JOIN (
    SELECT n, k, at_seq, without_aborted, ranges.first_offset, end_offset, bucket
    FROM ranges JOIN extents USING (k),
         unnest(generate_series(greatest(ranges.first_offset, extents.first_offset) // 256,
                                least(end_offset - 1, extents.last_offset) // 256)) AS b(bucket)
) AS r ON r.k = s.k AND r.bucket = s."offset" // 256
LEFT JOIN aborted AS a ON a.k = s.k AND a.append_seq = s.append_seq
LEFT JOIN reopened AS u
  ON u.k = s.k AND u.append_seq = s.append_seq AND u.since_seq < r.at_seq
WHERE s."offset" >= r.first_offset AND s."offset" < r.end_offset AND s.append_seq < r.at_seq
  AND NOT (r.without_aborted AND (a.append_seq IS NOT NULL OR u.append_seq IS NOT NULL));

-- The first record missing from each.
CREATE TEMP TABLE missing AS
SELECT n, min("offset") AS "offset"
FROM inside AS i
WHERE NOT was_removed(i.k, i."offset", i.append_seq, i.at_seq)
GROUP BY n;

-- Share groups ------------------------------------------------------------------------------------

-- The events of share groups, once for each offset, with the highest and the lowest limit of
-- deliveries that the group has had on k. `final`: the acknowledgement is written. `forced`: a rule
-- or action takes the record from its member, or sets its delivery count.
CREATE TEMP TABLE handled AS
SELECT s.* EXCLUDE (first_offset, last_offset), o."offset"
FROM (
    SELECT k, r.seq, r."group", r.share_state, r.life, r.change, r.first_offset, r.last_offset,
           r.state, r.delivery_count, r.reason, r.cause,
           max(r.delivery_limit) OVER so_far AS limit_max,
           min(r.delivery_limit) OVER so_far AS limit_min,
           r.change IN ('accepted', 'rejected', 'gap') AS final,
           r.cause IS NOT NULL AND (
             r.state = 'Available' AND r.change NOT IN ('released', 'session_ended')
             OR r.change = 'counted'
           ) AS forced
    FROM share_records AS r JOIN places USING (run, topic_id, "partition")
    WINDOW so_far AS (PARTITION BY k, r."group" ORDER BY r.seq)
) AS s, unnest(generate_series(s.first_offset, s.last_offset)) AS o("offset");
