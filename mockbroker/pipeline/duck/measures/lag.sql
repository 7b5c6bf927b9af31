-- The lag of each group on each partition, at each report of an offset: to the high watermark, and to
-- the last stable offset, by their last reports. The newer report of the two
-- bounds the other one: the last stable offset is never above the high watermark. A negative
-- committed offset counts as 0.
WITH reported AS (
    SELECT run, seq, virtual_ms, topic, topic_id, "partition", high_watermark, last_stable_offset,
           log_end_offset, FALSE AS is_commit
    FROM watermarks
    WHERE high_watermark IS NOT NULL OR last_stable_offset IS NOT NULL
), groups_there AS (
    SELECT DISTINCT run, topic_id, "partition", "group" FROM commits WHERE applied
), events AS (
    SELECT t.*, g."group"
    FROM reported AS t JOIN groups_there AS g USING (run, topic_id, "partition")
    UNION ALL
    SELECT run, seq, virtual_ms, topic, topic_id, "partition", NULL, NULL, NULL, TRUE,
           "group"
    FROM commits WHERE applied
), so_far AS (
    SELECT run, "group", topic, topic_id, "partition", seq, virtual_ms, is_commit,
           last_value(CASE WHEN is_commit THEN seq END IGNORE NULLS) OVER line AS commit_seq,
           last_value(high_watermark IGNORE NULLS) OVER line AS high_watermark,
           last_value(last_stable_offset IGNORE NULLS) OVER line AS last_stable_offset,
           last_value(log_end_offset IGNORE NULLS) OVER line AS log_end_offset,
           last_value(CASE WHEN high_watermark IS NOT NULL THEN seq END IGNORE NULLS) OVER line
               AS high_seq,
           last_value(CASE WHEN last_stable_offset IS NOT NULL THEN seq END IGNORE NULLS) OVER line
               AS stable_seq
    FROM events
    WINDOW line AS (
        PARTITION BY run, topic_id, "partition", "group" ORDER BY seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
), bounded AS (
    SELECT * REPLACE (
        CASE WHEN stable_seq > high_seq THEN greatest(high_watermark, last_stable_offset)
             ELSE high_watermark END AS high_watermark,
        CASE WHEN high_seq > stable_seq THEN least(high_watermark, last_stable_offset)
             ELSE last_stable_offset END AS last_stable_offset
    )
    FROM so_far
), with_commit AS (
    SELECT s.*, c."offset" AS committed
    FROM bounded AS s
    LEFT JOIN commits AS c
      ON c.run = s.run AND c."group" = s."group" AND c.topic_id = s.topic_id
     AND c."partition" = s."partition" AND c.seq = s.commit_seq AND c.applied
)
SELECT run, "group", topic, topic_id, "partition", seq, virtual_ms, committed,
       last_stable_offset, high_watermark, log_end_offset,
       CASE WHEN high_watermark > committed THEN high_watermark - greatest(committed, 0)
            WHEN high_watermark <= committed THEN 0 END AS lag,
       CASE WHEN last_stable_offset > committed THEN last_stable_offset - greatest(committed, 0)
            WHEN last_stable_offset <= committed THEN 0 END AS lag_read_committed
FROM with_commit
ORDER BY run, "group", topic, "partition", seq
