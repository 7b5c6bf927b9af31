-- Log start <= last stable offset <= high watermark <= log end, without unknown ones.
WITH steps AS (
    SELECT *,
           -- Each offset is compared with the nearest known one before it.
           log_start_offset AS before_stable,
           coalesce(last_stable_offset, log_start_offset) AS before_high,
           coalesce(high_watermark, last_stable_offset, log_start_offset) AS before_end
    FROM watermarks
), found AS (
    SELECT *,
           CASE WHEN last_stable_offset < before_stable THEN last_stable_offset
                WHEN high_watermark < before_high THEN high_watermark
                WHEN log_end_offset < before_end THEN log_end_offset
           END AS "offset"
    FROM steps
)
SELECT run, CASE WHEN cause IS NULL THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       topic, topic_id, "partition", "offset", 'broker:' || broker AS subject,
       seq AS first_seq, seq AS last_seq, cause AS rule
FROM found
WHERE "offset" IS NOT NULL
