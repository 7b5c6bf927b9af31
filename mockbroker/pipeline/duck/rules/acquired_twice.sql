-- Records that were acquired while a member had them, in one life of a share partition.
WITH steps AS (
    SELECT *, max(seq) FILTER (WHERE NOT forced) OVER former AS former_seq
    FROM handled
    WHERE life IS NOT NULL
    WINDOW former AS (
        PARTITION BY k, "group", life, "offset" ORDER BY seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
), twice AS (
    SELECT s.*, coalesce((
             SELECT min_by(h.cause, h.seq) FROM handled AS h
             WHERE h.k = s.k AND h."group" = s."group" AND h.life = s.life
               AND h."offset" = s."offset" AND h.forced
               AND h.seq > s.former_seq AND h.seq < s.seq
           ), s.cause) AS excuse
    FROM steps AS s
    JOIN handled AS f ON f.k = s.k AND f."group" = s."group" AND f."offset" = s."offset"
         AND f.seq = s.former_seq
    WHERE s.change = 'acquired' AND f.state = 'Acquired'
)
SELECT p.run, CASE WHEN t.excuse IS NULL THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       p.topic, p.topic_id, p."partition", t."offset", t."group" AS subject,
       t.former_seq AS first_seq, t.seq AS last_seq, t.excuse AS rule
FROM twice AS t JOIN places AS p USING (k)
