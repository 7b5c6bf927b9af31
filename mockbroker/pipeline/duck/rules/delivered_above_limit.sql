-- Records that a share group's member acquired more often than the group's limit allows.
WITH counted AS (
    SELECT *, count(*) OVER so_far AS deliveries, min(seq) OVER so_far AS first_seq
    FROM handled
    WHERE change = 'acquired'
    WINDOW so_far AS (PARTITION BY k, "group", life, "offset" ORDER BY seq)
), above AS (
    SELECT c.*, coalesce((
             SELECT min_by(h.cause, h.seq) FROM handled AS h
             WHERE h.k = c.k AND h."group" = c."group" AND h.share_state = c.share_state
               AND h."offset" = c."offset" AND h.forced AND h.seq < c.seq
           ), c.cause) AS excuse
    FROM counted AS c
    WHERE greatest(c.delivery_count, c.deliveries) > c.limit_max
)
SELECT p.run, CASE WHEN a.excuse IS NULL THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       p.topic, p.topic_id, p."partition", a."offset", a."group" AS subject, a.first_seq,
       a.seq AS last_seq, a.excuse AS rule
FROM above AS a JOIN places AS p USING (k)
