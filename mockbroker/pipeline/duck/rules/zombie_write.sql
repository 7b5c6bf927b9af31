-- Writes with an epoch below the last one of the producer id.
WITH epochs AS (
    SELECT run, producer_id, producer_epoch, min(seq) AS seq
    FROM transactions
    GROUP BY ALL
    UNION ALL
    SELECT DISTINCT run, producer_id, producer_epoch, CAST(NULL AS BIGINT)
    FROM sent
), fences AS (
    -- For each epoch the first row with a higher one.
    SELECT DISTINCT run, producer_id, producer_epoch,
           min(seq) OVER (
             PARTITION BY run, producer_id ORDER BY producer_epoch DESC
             RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS seq
    FROM epochs
)
SELECT s.run,
       CASE WHEN s.append_seq IS NOT NULL AND d.append_seq IS NULL AND a.append_seq IS NULL
            THEN 'bug' ELSE 'report' END AS verdict,
       'wire' AS level, p.topic, p.topic_id, p."partition", s.base_offset AS "offset",
       'producer:' || s.producer_id AS subject,
       f.seq AS first_seq, coalesce(s.append_seq, s.seq) AS last_seq, NULL AS rule
FROM sent AS s
JOIN fences AS f USING (run, producer_id, producer_epoch)
JOIN places AS p USING (k)
LEFT JOIN aborted AS a ON a.k = s.k AND a.append_seq = s.append_seq
LEFT JOIN diverging AS d ON d.k = s.k AND d.append_seq = s.append_seq
WHERE f.seq < coalesce(s.append_seq, s.seq) AND (s.append_seq IS NOT NULL OR s.error IS NOT NULL)
