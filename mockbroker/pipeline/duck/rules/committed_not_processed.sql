-- Records below a group's committed offset without an operation `processed`.
WITH processed AS (
    SELECT run, "group", topic, "partition", "offset"
    FROM operations AS o
    WHERE op = 'processed' AND "group" IS NOT NULL AND "offset" IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM ambiguous AS a WHERE a.run = o.run AND a.topic = o.topic)
), begun AS (
    SELECT run, "group", topic, "partition", min("offset") AS lowest FROM processed GROUP BY ALL
), last_commits AS (
    SELECT k, "group", max(seq) AS seq, max_by("offset", seq) AS "offset"
    FROM applied WHERE "offset" IS NOT NULL
    GROUP BY ALL
), promised AS (
    SELECT c.k, c."group", c.seq, c."offset" AS end_offset,
           coalesce((
             SELECT min(a.fetch_offset) FROM answers AS a
             WHERE a.k = c.k AND a."group" = c."group"
           ), b.lowest) AS first_offset
    FROM last_commits AS c
    JOIN places AS p USING (k)
    JOIN begun AS b
      ON b.run = p.run AND b."group" = c."group" AND b.topic = p.topic AND b."partition" = p."partition"
)
SELECT p.run, 'report' AS verdict, 'application' AS level, p.topic, p.topic_id, p."partition",
       s."offset", c."group" AS subject, s.append_seq AS first_seq, c.seq AS last_seq, NULL AS rule
FROM promised AS c JOIN lasting AS s USING (k) JOIN places AS p USING (k)
WHERE s."offset" >= c.first_offset AND s."offset" < c.end_offset
  AND NOT was_removed(s.k, s."offset", s.append_seq, c.seq)
  AND NOT EXISTS (
    SELECT 1 FROM processed AS o
    WHERE o.run = p.run AND o."group" = c."group" AND o.topic = p.topic
      AND o."partition" = p."partition" AND o."offset" = s."offset"
  )
