-- Read spans of a group that began at or below its earlier deliveries.
WITH read_spans AS (
    SELECT k, "group", read_span, min(response_seq) AS response_seq, min(lowest) AS lowest,
           max(highest) AS highest
    FROM answers
    WHERE lowest IS NOT NULL AND "group" IS NOT NULL AND read_span IS NOT NULL
    GROUP BY ALL
), compared AS (
    SELECT *, min(response_seq) OVER (PARTITION BY k, "group") AS first_seq,
           max(highest) OVER (
             PARTITION BY k, "group" ORDER BY response_seq
             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS highest_before
    FROM read_spans
)
SELECT p.run, 'report' AS verdict, 'wire' AS level, p.topic, p.topic_id, p."partition",
       c.lowest AS "offset", c."group" AS subject, c.first_seq, c.response_seq AS last_seq,
       NULL AS rule
FROM compared AS c JOIN places AS p USING (k)
WHERE c.lowest <= c.highest_before
