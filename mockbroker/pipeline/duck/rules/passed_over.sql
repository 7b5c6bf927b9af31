-- Records below the start offset of a share partition that are neither acknowledged nor archived.
WITH starts AS (
    SELECT k, s.*, max(s."offset") OVER former AS highest
    FROM share_starts AS s JOIN places USING (run, topic_id, "partition")
    WINDOW former AS (
        PARTITION BY k, s."group", s.share_state ORDER BY s.seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
), moves AS (
    SELECT k, seq, "group", share_state, cause,
           CASE WHEN change = 'moved' THEN former_offset ELSE highest END AS first_offset,
           "offset" AS end_offset
    FROM starts
    WHERE change IN ('moved', 'loaded')
), near AS (
    SELECT m.*, bucket
    FROM moves AS m JOIN extents AS e USING (k),
         unnest(generate_series(greatest(m.first_offset, e.first_offset) // 256,
                                least(m.end_offset - 1, e.last_offset) // 256)) AS b(bucket)
    WHERE m.first_offset < m.end_offset
), passed AS (
    SELECT n.k, n.seq, n."group", n.share_state, n.cause, s."offset", s.append_seq
    FROM near AS n
    JOIN lasting AS s ON s.k = n.k AND n.bucket = s."offset" // 256
         AND s."offset" >= n.first_offset AND s."offset" < n.end_offset AND s.append_seq < n.seq
    WHERE NOT was_removed(s.k, s."offset", s.append_seq, n.seq)
)
SELECT p.run, CASE WHEN d.cause IS NULL THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       p.topic, p.topic_id, p."partition", d."offset", d."group" AS subject,
       d.append_seq AS first_seq, d.seq AS last_seq, d.cause AS rule
FROM passed AS d JOIN places AS p USING (k)
WHERE NOT EXISTS (
    SELECT 1 FROM handled AS h
    WHERE h.k = d.k AND h."group" = d."group" AND h.share_state = d.share_state
      AND h."offset" = d."offset" AND h.state IN ('Acknowledged', 'Archived') AND h.seq < d.seq
)
