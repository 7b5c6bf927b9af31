-- Records that were acquired after their acknowledgement was written, in one state of a share partition.
WITH steps AS (
    SELECT *, max(seq) FILTER (WHERE final) OVER former AS final_seq
    FROM handled
    WINDOW former AS (
        PARTITION BY k, "group", share_state, "offset" ORDER BY seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
), again AS (
    SELECT p.run, p.topic, p.topic_id, p."partition", s."offset", s."group", s.final_seq, s.seq,
           coalesce((
             SELECT min_by(h.cause, h.seq) FROM handled AS h
             WHERE h.k = s.k AND h."group" = s."group" AND h.share_state = s.share_state
               AND h."offset" = s."offset" AND h.cause IS NOT NULL
               AND h.seq > s.final_seq AND h.seq <= s.seq
           ), (
             SELECT min_by(coalesce(r.cause, r.reason), r.seq) FROM removals AS r
             WHERE r.run = p.run AND r.topic = '__share_group_state'
               AND r.seq > s.final_seq AND r.seq < s.seq
               AND r.reason NOT IN ('retention', 'compaction', 'delete_records', 'topic_deleted')
           )) AS excuse
    FROM steps AS s JOIN places AS p USING (k)
    WHERE s.change = 'acquired' AND s.final_seq IS NOT NULL
)
SELECT run, CASE WHEN excuse IS NULL THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       topic, topic_id, "partition", "offset", "group" AS subject, final_seq AS first_seq,
       seq AS last_seq, excuse AS rule
FROM again
