-- High watermarks that decrease on one broker within a leader epoch.
WITH moves AS (
    SELECT *, lag(high_watermark) OVER former AS former, lag(seq) OVER former AS former_seq
    FROM watermarks
    WHERE high_watermark IS NOT NULL AND leader_epoch IS NOT NULL
    WINDOW former AS (
        PARTITION BY run, topic_id, "partition", broker, leader_epoch ORDER BY seq
    )
)
SELECT run, CASE WHEN cause IS NULL THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       topic, topic_id, "partition", high_watermark AS "offset", 'broker:' || broker AS subject,
       former_seq AS first_seq, seq AS last_seq, cause AS rule
FROM moves
WHERE high_watermark < former
